package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/internal/show/review"
)

const (
	maxBody  = 64 << 10 // bytes of a request: its longest text is a label
	maxBrief = 200      // bytes of a text in the list of cases
)

// queueShown is what a page gets about all cases.
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
		shown.Cases[i].Text = brief(shown.Cases[i].Text)
	}
	send(w, http.StatusOK, shown)
}

// brief returns the beginning of a text.
func brief(text string) string {
	if len(text) <= maxBrief {
		return text
	}
	end := maxBrief
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
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
	s.pages.changed()
	if err != nil {
		fail(w, err)
		return
	}
	send(w, http.StatusOK, changed{request.Case, d})
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
	s.pages.changed()
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
	default: // another page was first
	}
}

// receive reads the JSON of a request.
func receive(w http.ResponseWriter, r *http.Request, to any) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "type", "a request is application/json")
		return false
	}
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
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

// pages keeps the open pages. Its zero value is empty.
type pages struct {
	mu   sync.Mutex
	open map[string]*viewer // by the names that pages give themselves
}

// viewer is an open page.
type viewer struct {
	Page     string `json:"page"`
	Reviewer string `json:"reviewer"`
	Case     string `json:"case"` // the case that it shows; empty: none
	changed  chan struct{}
}

// enter adds a page. It replaces an earlier page of the same name, which has lost its connection.
func (p *pages) enter(name string) *viewer {
	v := &viewer{Page: name, changed: make(chan struct{}, 1)}
	p.mu.Lock()
	if p.open == nil {
		p.open = map[string]*viewer{}
	}
	if before := p.open[name]; before != nil {
		v.Reviewer, v.Case = before.Reviewer, before.Case
	}
	p.open[name] = v
	p.mu.Unlock()
	p.changed()
	return v
}

func (p *pages) leave(v *viewer) {
	p.mu.Lock()
	if p.open[v.Page] == v {
		delete(p.open, v.Page)
	}
	p.mu.Unlock()
	p.changed()
}

// changed wakes the streams of all pages.
func (p *pages) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.open {
		select {
		case v.changed <- struct{}{}:
		default: // it is already awake
		}
	}
}

// show records a page's case. If another page shows that case and share is not set, it only returns who does.
func (p *pages) show(name, reviewer, id string, share bool) (by string, taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.open {
		if id != "" && other.Case == id && other.Page != name && !share {
			return other.Reviewer, true
		}
	}
	if v := p.open[name]; v != nil {
		v.Reviewer, v.Case = reviewer, id
	}
	return "", false
}

// others returns copies of all pages except one, by name.
func (p *pages) others(but string) []viewer {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []viewer{}
	for _, name := range slices.Sorted(maps.Keys(p.open)) {
		if name != but {
			all = append(all, *p.open[name])
		}
	}
	return all
}

func (s *ReviewServer) at(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Page, Reviewer, Case string
		Share                bool
	}
	if !receive(w, r, &request) {
		return
	}
	by, taken := s.pages.show(request.Page, request.Reviewer, request.Case, request.Share)
	if taken {
		refuse(w, http.StatusConflict, "taken", by)
		return
	}
	s.pages.changed()
	send(w, http.StatusOK, struct{}{})
}

// event is a message to a page, with what has changed.
type event struct {
	Decided map[string]*review.Decision `json:"decided"` // by case; null: the case no longer has one
	Labels  []string                    `json:"labels,omitempty"`
	Pages   []viewer                    `json:"pages"` // the other pages
}

func (s *ReviewServer) sendEvents(w http.ResponseWriter, r *http.Request) {
	name := r.FormValue("page")
	if name == "" || len(name) > 100 {
		refuse(w, http.StatusBadRequest, "page", "a page has a name")
		return
	}
	stream := http.NewResponseController(w)
	if err := stream.SetReadDeadline(time.Time{}); err != nil {
		refuse(w, http.StatusInternalServerError, "stream", err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	v := s.pages.enter(name)
	defer s.pages.leave(v)
	known, labels := map[string]string{}, 0 // versions by case; how many labels
	for {
		select {
		case <-r.Context().Done():
			return
		case <-v.changed:
		}
		e := event{Decided: map[string]*review.Decision{}, Pages: s.pages.others(name)}
		now, _ := s.queue.Decisions()
		for id, d := range now {
			if known[id] != d.Version {
				e.Decided[id], known[id] = d, d.Version
			}
		}
		for id := range known {
			if now[id] == nil {
				e.Decided[id] = nil
				delete(known, id)
			}
		}
		if all := s.queue.Labels(); len(all) != labels {
			e.Labels, labels = all, len(all)
		}
		text, err := json.Marshal(e)
		if err != nil {
			return // texts and times always encode
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
			return
		}
		if err := stream.Flush(); err != nil {
			return
		}
	}
}
