package page

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed" // of the assets
	"errors"
	"html/template"
	"net"
	"net/http"
	"time"

	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/show/review"
)

// This file serves the page on which people decide (package engine/internal/show/review), to the browsers of
// this machine.
//
// The server serves only its own page. It listens on a loopback address. Its URL has a random token
// in the fragment, which browsers never send. The page reads the token there and sends it with each
// call, in the header Authorization: there is no cookie that another site, or a server at another
// port, could use. Against DNS rebinding, the server refuses a host name other than localhost or a
// loopback address. It also refuses calls from other origins, and sends no CORS permissions.
//
//	GET  /             the page, which holds no data
//	GET  /api/queue    cases, labels, and notes for people
//	GET  /api/case     one case: its whole text, and the details of its answer
//	GET  /api/decided  the decisions so far, which pages poll
//	POST /api/decide   review.Request
//	POST /api/undo     takes back the last decision of a page
//	POST /api/finish   ends the review
//
// The page shows one case at a time and is operated by keyboard. Several people, and several pages,
// can decide at the same time: each page shows the decisions of the others within seconds.

var (
	//go:embed assets/labels.js
	labels string
	//go:embed assets/server.js
	server string
	//go:embed assets/review.js
	code string
	//go:embed assets/review.css
	reviewStyle string
	//go:embed assets/review.html
	body template.HTML
)

// write returns the page without data: the server sends that only to callers with the token.
func write(title string) ([]byte, error) {
	var b bytes.Buffer
	err := Page{
		Title: title, Brand: "racflow review", Body: body, Live: true,
		Modules: []string{Table, Item, labels, server, code}, Styles: []string{reviewStyle},
	}.Write(&b)
	return b.Bytes(), err
}

// ReviewOptions has the other contents of a page, besides its cases.
type ReviewOptions struct {
	Title    string   // what is reviewed, such as "run-000012"
	Reviewer string   // the page's initial reviewer name
	Notes    []string // notes for people, such as lines to add to a file
	// Details returns the details of a case's answer, in the form of the page's item view. If the
	// function or the result is nil, there are no details.
	Details func(ctx context.Context, c review.Case) (any, error)
}

// ReviewServer serves the review page of a queue.
type ReviewServer struct {
	options  ReviewOptions
	queue    *review.Queue
	page     []byte
	token    string
	finished chan struct{} // gets a value when a person has finished
}

// NewReviewServer makes a server with a token of its own.
func NewReviewServer(q *review.Queue, o ReviewOptions) (*ReviewServer, error) {
	s := &ReviewServer{options: o, queue: q, token: rand.Text(), finished: make(chan struct{}, 1)}
	var err error
	s.page, err = write(o.Title)
	return s, err
}

// URL returns the address of the page, with the token, if the server listens at addr.
func (s *ReviewServer) URL(addr net.Addr) string { return "http://" + addr.String() + "/#" + s.token }

// Time limits of requests and of shutdown.
const (
	headerTime = 10 * time.Second
	bodyTime   = 30 * time.Second
	endTime    = 5 * time.Second
)

// Serve serves until a person has finished, or until ctx ends, which is not an error.
func (s *ReviewServer) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan error, 1)
	go func() {
		select {
		case <-ctx.Done():
		case <-s.finished:
			cancel()
		}
		patience, done := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer done()
		ended <- server.Shutdown(patience)
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	if err := <-ended; err != nil {
		return server.Close() // a client has not stopped sending
	}
	return nil
}

// Handler handles the requests of pages.
func (s *ReviewServer) Handler() http.Handler {
	api := http.NewServeMux()
	api.HandleFunc("GET /api/queue", s.sendQueue)
	api.HandleFunc("GET /api/case", s.sendCase)
	api.HandleFunc("GET /api/decided", s.sendDecided)
	api.HandleFunc("POST /api/decide", s.decide)
	api.HandleFunc("POST /api/undo", s.undo)
	api.HandleFunc("POST /api/finish", s.finish)
	all := http.NewServeMux()
	all.Handle("/api/", s.authorized(api))
	all.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(s.page)
	})
	return local(all)
}

// local refuses requests that reach this machine by a foreign host name, or come from another
// site's page, and tells browsers to keep the page to itself.
func local(next http.Handler) http.Handler {
	pages := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Content-Security-Policy":      "frame-ancestors 'none'", // a page cannot set this itself
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			w.Header().Set(name, value)
		}
		if !confine.ThisMachine(r.Host) { // only the host is checked: ssh may forward another port
			refuse(w, http.StatusForbidden, "host", "this page is for this machine alone: open it by the address that racflow printed")
			return
		}
		if pages.Check(r) != nil {
			refuse(w, http.StatusForbidden, "origin", "calls from other sites are refused")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *ReviewServer) authorized(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + s.token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := sha256.Sum256([]byte(r.Header.Get("Authorization"))); subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			refuse(w, http.StatusUnauthorized, "token", "the address lacks the token: open the whole address that racflow printed")
			return
		}
		next.ServeHTTP(w, r)
	})
}
