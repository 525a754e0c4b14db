package page

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/racflow/racflow/engine/internal/show/review"
	"github.com/racflow/racflow/engine/internal/source/rows"
)

const (
	maxBody  = 64 << 10 // bytes of a request, whose longest text is a label
	maxBrief = 120      // characters of a text in the list of cases
)

// queueShown has the data about all cases for a page.
type queueShown struct {
	Title    string                      `json:"title"`
	Reviewer string                      `json:"reviewer"`
	Path     string                      `json:"path"`
	Notes    []string                    `json:"notes"`
	Cases    []review.Case               `json:"cases"` // with shortened texts
	Labels   []string                    `json:"labels"`
	Many     bool                        `json:"many,omitempty"` // a decision is a set of labels
	Decided  map[string]*review.Decision `json:"decided"`        // by case
}

func (s *ReviewServer) sendQueue(w http.ResponseWriter, _ *http.Request) {
	decided, errs := s.queue.Decisions()
	shown := queueShown{Title: s.options.Title, Reviewer: s.options.Reviewer, Path: s.queue.Path(), Notes: append([]string{}, s.options.Notes...), Labels: s.queue.Labels(), Many: s.queue.Form().Many, Decided: decided}
	for _, err := range errs {
		shown.Notes = append(shown.Notes, err.Error())
	}
	shown.Cases = append([]review.Case{}, s.queue.Cases()...)
	for i := range shown.Cases {
		shown.Cases[i].Text = cut(shown.Cases[i].Text, maxBrief)
	}
	send(w, http.StatusOK, shown)
}

func (s *ReviewServer) sendCase(w http.ResponseWriter, r *http.Request) {
	c, ok := s.queue.Case(r.FormValue("id"))
	if !ok {
		fail(w, review.ErrCase)
		return
	}
	shown := struct {
		Case    review.Case `json:"case"`
		Details any         `json:"details,omitempty"`
		Gone    string      `json:"gone,omitempty"` // why there are no details
	}{Case: c}
	if s.options.Details != nil {
		var err error
		if shown.Details, err = s.options.Details(r.Context(), c); err != nil {
			shown.Gone = err.Error()
		}
	}
	send(w, http.StatusOK, shown)
}

func (s *ReviewServer) decide(w http.ResponseWriter, r *http.Request) {
	var request review.Request
	if !receive(w, r, &request) {
		return
	}
	d, err := s.queue.Decide(request)
	if err != nil {
		fail(w, err)
		return
	}
	send(w, http.StatusOK, changed{request.Case, d})
}

// decidedShown has the decisions so far. A page polls it, because other pages decide, too.
type decidedShown struct {
	Decided map[string]*review.Decision `json:"decided"` // by case
	Labels  []string                    `json:"labels"`
}

func (s *ReviewServer) sendDecided(w http.ResponseWriter, _ *http.Request) {
	decided, _ := s.queue.Decisions() // the notes already report lines that cannot be read
	send(w, http.StatusOK, decidedShown{decided, s.queue.Labels()})
}

// changed is the new state of a case.
type changed struct {
	Case     string           `json:"case"`
	Decision *review.Decision `json:"decision"` // nil: there is no decision
}

func (s *ReviewServer) undo(w http.ResponseWriter, r *http.Request) {
	var request struct{ Page string }
	if !receive(w, r, &request) {
		return
	}
	id, now, err := s.queue.Undo(request.Page)
	if err != nil {
		fail(w, err)
		return
	}
	send(w, http.StatusOK, changed{id, now})
}

func (s *ReviewServer) finish(w http.ResponseWriter, r *http.Request) {
	var nothing struct{}
	if !receive(w, r, &nothing) {
		return
	}
	send(w, http.StatusOK, nothing)
	select {
	case s.finished <- struct{}{}:
	default: // another page decided first
	}
}

// receive reads the JSON of a request.
func receive(w http.ResponseWriter, r *http.Request, to any) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "type", "a request is application/json")
		return false
	}
	in := json.NewDecoder(rows.UTF8(http.MaxBytesReader(w, r.Body, maxBody)))
	in.DisallowUnknownFields()
	err := in.Decode(to)
	long := new(http.MaxBytesError)
	switch {
	case errors.As(err, &long):
		refuse(w, http.StatusRequestEntityTooLarge, "long", "the request is too long")
	case err != nil:
		refuse(w, http.StatusBadRequest, "json", "the request is not what was expected: "+err.Error())
	}
	return err == nil
}

// failure is the JSON of an error.
type failure struct {
	Code  string           `json:"code"`
	Error string           `json:"error"`
	Now   *review.Decision `json:"now,omitempty"` // of a conflict
}

// fail responds with an error of the queue.
func fail(w http.ResponseWriter, err error) {
	conflict := new(review.ConflictError)
	switch {
	case errors.As(err, &conflict):
		send(w, http.StatusConflict, failure{"conflict", err.Error(), conflict.Now})
	case errors.Is(err, review.ErrUndo):
		refuse(w, http.StatusConflict, "undo", err.Error())
	case errors.Is(err, review.ErrCase):
		refuse(w, http.StatusNotFound, "case", err.Error())
	case errors.Is(err, review.ErrNew):
		refuse(w, http.StatusUnprocessableEntity, "new", err.Error())
	case errors.Is(err, review.ErrLabel), errors.Is(err, review.ErrReviewer), errors.Is(err, review.ErrDrop):
		refuse(w, http.StatusUnprocessableEntity, "value", err.Error())
	default:
		refuse(w, http.StatusInternalServerError, "kept", "nothing was kept: "+err.Error())
	}
}

func refuse(w http.ResponseWriter, status int, code, text string) {
	send(w, status, failure{Code: code, Error: text})
}

func send(w http.ResponseWriter, status int, what any) {
	var text strings.Builder
	if err := json.NewEncoder(&text).Encode(what); err != nil {
		http.Error(w, "this cannot be sent: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text.String()))
}
