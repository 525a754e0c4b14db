package modelserver

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options say how a server behaves. The zero Options answer at once and right.
type Options struct {
	Latency time.Duration // of every reply
	Key     string        // that requests must bring; empty: any
	// Answer gives the text of one choice; without one it is the first label
	// that the request allows, or "answer". Where the request asks for a JSON
	// object, a text that is none becomes its label.
	Answer func(a Ask, choice int) string
	// Vector gives the embedding of a text; without one it is drawn from the
	// text's hash, with Dimension numbers (8 if that is 0).
	Vector    func(text string) []float32
	Dimension int

	Refuse func(Ask) bool // requests that are answered with 400; nil: none

	Bytes     bool // a token is one byte, not four
	IgnoreN   bool // one choice, whatever n says
	MaxN      int  // a larger n is refused; 0: none
	MaxInputs int  // of one request for embeddings; more are refused; 0: 2,048
	Base64    Base64
	Shuffle   bool // embeddings come in another order, with their index

	Faults []Fault // the first that applies to a request happens
	Seed   uint64  // of the draws by Fault.Share

	// Probes makes probes requests like all others: they are counted, and Answer, Refuse
	// and Faults apply to them. Otherwise they get the first label or "answer".
	Probes bool
}

// Base64 says what a server does with encoding_format = "base64".
type Base64 uint8

// What a server does with it.
const (
	Base64Given   Base64 = iota // it obeys
	Base64Ignored               // it sends numbers
	Base64Refused               // it answers 400
)

// Server is a running server.
type Server struct {
	URL string // base address, with /v1 at its end

	options Options
	http    *httptest.Server
	closed  chan struct{}
	close   func()

	mu       sync.Mutex
	asks     []Ask
	probes   []Ask
	inFlight int
	most     int
	given    map[string]int
	prefixes map[[32]byte]bool
}

// Serve starts a server that ends with the test.
func Serve(t testing.TB, o Options) *Server {
	t.Helper()
	s := Start(o)
	t.Cleanup(s.Close)
	return s
}

// Start starts a server on a free port of the loopback interface.
func Start(o Options) *Server {
	s := &Server{options: o, closed: make(chan struct{}), given: map[string]int{}, prefixes: map[[32]byte]bool{}}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL + "/v1"
	s.close = sync.OnceFunc(func() {
		close(s.closed) // requests that hang end
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Close ends the server and every request that is under way.
func (s *Server) Close() { s.close() }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	a := s.arrive(r, body)
	defer s.leave(a)
	var fault Fault
	if !a.apart {
		fault = s.fault(a.Number)
	}
	if !s.wait(r, s.options.Latency) {
		return
	}
	switch {
	case fault.Kind == Hang:
		s.wait(r, time.Hour)
		return
	case fault.Kind == Drop:
		panic(http.ErrAbortHandler)
	case fault.Kind == Status:
		fault.refuse(w)
		return
	case fault.Kind == Page:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><body>Sign in to the network</body></html>")
		return
	case s.options.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.options.Key:
		refuse(w, http.StatusUnauthorized, "wrong key: "+r.Header.Get("Authorization"))
		return
	}
	reply, refusal := s.reply(a, fault)
	if s.options.Refuse != nil && !a.apart && s.options.Refuse(a) {
		refusal = "refused, as the test says"
	}
	if refusal != "" {
		refuse(w, http.StatusBadRequest, refusal)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fault.send(w, reply)
}

// reply returns what the request asks for, or why it is refused.
func (s *Server) reply(a Ask, fault Fault) (reply []byte, refusal string) {
	var object any
	switch {
	case a.invalid != "":
		return nil, a.invalid
	case strings.HasSuffix(a.Path, "/chat/completions"), strings.HasSuffix(a.Path, "/completions"):
		object, refusal = s.complete(a, fault)
	case strings.HasSuffix(a.Path, "/embeddings"):
		object, refusal = s.embed(a, fault)
	default:
		refusal = "there is no " + a.Path
	}
	if refusal != "" {
		return nil, refusal
	}
	reply, err := json.Marshal(object)
	if err != nil {
		return nil, err.Error()
	}
	return reply, ""
}

// wait reports whether the time passed before the client left.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-s.closed:
	}
	return false
}

func refuse(w http.ResponseWriter, status int, message string) {
	text, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error"}})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
