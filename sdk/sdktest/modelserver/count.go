package modelserver

import (
	"crypto/sha256"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// probing begins the User-Agent of requests that only find out what a model takes.
const probing = "racflow (probe)"

// arrive records a request.
func (s *Server) arrive(r *http.Request, body []byte) Ask {
	a := Ask{At: time.Now(), Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	probe := strings.HasPrefix(r.UserAgent(), probing)
	a.apart = probe && !s.options.Probes
	a.Batch, _ = r.Context().Value(batchKey{}).(string)
	if messages(a.Path) {
		a.readMessages()
	} else {
		a.read()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Number = len(s.asks)
	if a.apart {
		a.Number = len(s.probes)
	}
	if probe {
		s.probes = append(s.probes, a)
	}
	if !a.apart {
		s.asks = append(s.asks, a)
		s.inFlight++
		s.most = max(s.most, s.inFlight)
	}
	return a
}

func (s *Server) leave(a Ask) {
	if a.apart {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
}

// block is the size of the pieces of a prompt that are cached, in characters:
// 16 tokens.
const block = 64

// charge counts the choices that a question gets, and the tokens of its prompt:
// all, and those that were cached.
func (s *Server) charge(a Ask, choices int) (in, cached int) {
	whole := a.Whole()
	defer func() { in += s.tokens(a.schemaText) }() // as for services that show it to the model
	if a.apart {
		return s.prompt(a), 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given[whole] += choices
	prefix, known := sha256.New(), true
	for end := block; end <= len(whole); end += block {
		_, _ = prefix.Write([]byte(whole[end-block : end]))
		sum := [32]byte(prefix.Sum(nil))
		if known = known && s.prefixes[sum]; known {
			cached = end / 4
		}
		s.prefixes[sum] = true
	}
	return s.prompt(a), cached
}

// prompt counts the tokens of a prompt.
func (s *Server) prompt(a Ask) int {
	if s.options.Count == nil || len(a.Messages) == 0 {
		return s.tokens(a.Whole())
	}
	sum := s.options.Template
	for _, m := range a.Messages {
		sum += s.options.Count(m.Content) + s.options.Frame
	}
	return sum
}

// Asks returns the requests so far, in the order in which they came, without probes
// unless Options.Probes is set.
func (s *Server) Asks() []Ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asks)
}

// Probes returns the requests so far that only find out what a model takes: those whose
// User-Agent begins with "racflow (probe)".
func (s *Server) Probes() []Ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.probes)
}

// Calls is the number of Asks.
func (s *Server) Calls() int { return len(s.Asks()) }

// MostAtOnce is the largest number of requests that were under way together.
func (s *Server) MostAtOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// Given is the number of choices that each question got, by its Whole, without those of
// replies that a fault truncated.
func (s *Server) Given() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.given)
}

// Doubled is how many choices were given beyond n for each question: those that were
// answered, and paid for, more than once.
func (s *Server) Doubled(n int) int {
	doubled := 0
	for _, given := range s.Given() {
		doubled += max(0, given-n)
	}
	return doubled
}
