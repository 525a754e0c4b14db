package review

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/review"
)

// pages are those that are open. The zero value has none.
type pages struct {
	mu   sync.Mutex
	open map[string]*viewer // by the names that pages have given themselves
}

// viewer is an open page.
type viewer struct {
	Page     string `json:"page"`
	Reviewer string `json:"reviewer"`
	Case     string `json:"case"` // that it shows; empty: none
	told     chan struct{}
}

// enter adds a page; a later one of the same name takes the place of an earlier one, which has lost
// its connection.
func (p *pages) enter(name string) *viewer {
	v := &viewer{Page: name, told: make(chan struct{}, 1)}
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
		case v.told <- struct{}{}:
		default: // it is awake
		}
	}
}

// show notes which case a page shows. Where another one shows it and share is not set, it says who does.
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

// others are copies of the pages but for one, by name.
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

func (s *Server) at(w http.ResponseWriter, r *http.Request) {
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

// event is what a page is told: what it does not know yet.
type event struct {
	Decided map[string]*review.Decision `json:"decided"` // by case; null: none counts any more
	Labels  []string                    `json:"labels,omitempty"`
	Pages   []viewer                    `json:"pages"` // the others
}

func (s *Server) sendEvents(w http.ResponseWriter, r *http.Request) {
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
		case <-v.told:
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
