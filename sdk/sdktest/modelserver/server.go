package modelserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a running server.
type Server struct {
	URL string // base address, with /v1 at its end

	options Options
	jobs    jobs
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
	s, err := Listen(o, "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("modelserver: no port is free: %v", err))
	}
	return s
}

// Listen starts a server on an address, HOST:PORT.
func Listen(o Options, address string) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, closed: make(chan struct{}), given: map[string]int{}, prefixes: map[[32]byte]bool{}}
	s.http = &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}}
	s.http.Start()
	s.URL = s.http.URL + "/v1"
	s.close = sync.OnceFunc(func() {
		close(s.closed) // requests that hang end
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s, nil
}

// Close ends the server and every request that is under way.
func (s *Server) Close() { s.close() }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.serveBatches(w, r) || s.serveMessageBatches(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	if messages(r.URL.Path) {
		s.serveMessages(w, r, body)
		return
	}
	a := s.arrive(r, body)
	defer s.leave(a)
	var fault Fault
	if !a.apart {
		fault = s.fault(a)
	}
	if !s.wait(r, s.options.Latency) {
		return
	}
	switch {
	case fault.Kind == Hang:
		s.wait(r, time.Hour)
		return
	case fault.ends(w):
		return
	case s.options.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.options.Key:
		refuse(w, http.StatusUnauthorized, errors.New("wrong key: "+r.Header.Get("Authorization")))
		return
	}
	a.stream = a.stream || s.options.Streams
	err = s.unsupported(a)
	var reply []byte
	if err == nil {
		reply, err = s.reply(a, fault)
	}
	if s.options.Refuse != nil && !a.apart && s.options.Refuse(a) {
		err = errors.New("refused, as the test says")
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if a.stream {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	fault.send(w, reply)
}

// reply returns what the request asks for, or why it is refused.
func (s *Server) reply(a Ask, fault Fault) ([]byte, error) {
	switch {
	case a.invalid != "":
		return nil, errors.New(a.invalid)
	case strings.HasSuffix(a.Path, "/completions"):
		c, err := s.complete(a, fault)
		switch {
		case err != nil:
			return nil, err
		case a.stream:
			return s.stream(c, a.streamUsage), nil
		}
		return json.Marshal(s.whole(c))
	case strings.HasSuffix(a.Path, "/embeddings"):
		vectors, err := s.embed(a, fault)
		if err != nil {
			return nil, err
		}
		return json.Marshal(vectors)
	}
	return nil, fmt.Errorf("there is no %s", a.Path)
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
