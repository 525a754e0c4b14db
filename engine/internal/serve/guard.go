package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/cors"

	"github.com/racflow/racflow/engine/internal/source/rows"
)

// This file stands between the network and an HTTP handler, and applies the same access rules and
// limits to all interfaces of a server: a handler behind a Guard gets only requests with a known
// Host and a valid token, and no requests from foreign web pages. The Guard limits the number of
// simultaneous requests, the size of headers and bodies, and the time in which a body has to
// arrive. If there are too many requests, the request whose body arrives slowest is dropped.
//
// Rejected requests get a problem document (RFC 9457). The Guard knows nothing about pipelines, and
// does not limit how long a handler works.

// guard checks requests before it passes them to a handler.
type guard struct {
	options  GuardOptions
	pages    *http.CrossOriginProtection
	working  chan struct{}
	arriving arrivals
	inside   http.Handler // behind the check of origins
}

// Why a body cannot be read.
var (
	errSlow   = errors.New("the body did not arrive in time")
	errPacked = errors.New("the body is not whole in zstd, as its Content-Encoding says")
)

// bound limits a request's body; a non-nil problem rejects the request.
func (g *guard) bound(w http.ResponseWriter, r *http.Request) *Problem {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	coding := r.Header.Get("Content-Encoding")
	packed := strings.EqualFold(coding, "zstd")
	if coding != "" && !packed && !strings.EqualFold(coding, "identity") {
		return newProblem(http.StatusUnsupportedMediaType, fmt.Sprintf("the body is packed with %q: send bodies as they are, without a Content-Encoding, or packed with zstd", coding))
	}
	streams := g.options.Streams(r)
	b := &guardedBody{in: r.Body, control: http.NewResponseController(w), arriving: &g.arriving}
	if streams {
		b.each = g.options.Stall
	} else {
		if r.ContentLength > g.options.Body {
			return g.large()
		}
		b.in = http.MaxBytesReader(w, r.Body, g.options.Body)
		b.until = time.Now().Add(g.options.Arrive)
	}
	body := io.ReadCloser(b)
	if packed {
		if body = unpacked(b); !streams {
			body = http.MaxBytesReader(w, body, g.options.Body)
		}
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{rows.UTF8(body), body}
	return nil
}

// packedWindow is the largest decompression window that a compressed body may ask for.
const packedWindow = 8 << 20

// unpacked returns the decompressed content of a body in zstd. Reading fails with errPacked, or
// with the body's own error.
func unpacked(body io.ReadCloser) io.ReadCloser {
	in, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(packedWindow))
	if err != nil {
		panic(err) // impossible: the options are valid
	}
	return &unpacking{in, body}
}

// unpacking decompresses a body in zstd. The decoder works in the reading goroutine, and so need not be
// closed.
type unpacking struct {
	in *zstd.Decoder
	io.Closer
}

// Read implements io.Reader.
func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	var own *http.MaxBytesError
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errSlow) && !errors.As(err, &own) {
		err = fmt.Errorf("%w: %w", errPacked, err)
	}
	return n, err
}

func (g *guard) large() *Problem { return tooLarge(g.options.Body) }

func tooLarge(limit int64) *Problem {
	return newProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than the %d bytes that this server takes", limit))
}

// unreadableBody returns the problem for a body that could not be read to its end.
func unreadableBody(err error) *Problem {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, errSlow):
		return newProblem(http.StatusRequestTimeout, errSlow.Error())
	case errors.Is(err, errPacked):
		return newProblem(http.StatusBadRequest, err.Error())
	case errors.Is(err, rows.ErrEncoding):
		return newProblem(http.StatusUnsupportedMediaType, "the body cannot be read: "+err.Error())
	}
	return newProblem(http.StatusBadRequest, "the body ends before it is whole")
}

// expect limits the time for a whole body to arrive, even if no handler reads it: the server reads
// the rest of the body before it answers.
func (g *guard) expect(w *writer, r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		_ = w.control.SetReadDeadline(time.Now().Add(g.options.Arrive)) // fails only for recorders of tests
	}
}

// patience is how long the Guard waits for a body before another request may take its place, and
// how long the other request then waits for the place.
const patience = 500 * time.Millisecond

// enter takes a place among the simultaneous requests. It returns false if there is none.
func (g *guard) enter(ctx context.Context) bool {
	select {
	case g.working <- struct{}{}:
		return true
	default:
	}
	if !g.arriving.dropSlowest() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case g.working <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// arrivals holds the bodies that the server waits for.
type arrivals struct {
	mu      sync.Mutex
	waiting map[*guardedBody]bool
}

// dropSlowest ends the wait for the body with the lowest rate. It returns false if the server has
// not waited long enough for any body.
func (a *arrivals) dropSlowest() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	var slowest *guardedBody
	var lowest float64
	for b := range a.waiting {
		waited := b.waited + time.Since(b.since)
		rate := float64(b.arrived+1) / waited.Seconds()
		if waited >= patience && (slowest == nil || rate < lowest) {
			slowest, lowest = b, rate
		}
	}
	if slowest == nil {
		return false
	}
	delete(a.waiting, slowest)
	slowest.until, slowest.each = time.Unix(1, 0), 0
	_ = slowest.control.SetReadDeadline(slowest.until) // fails only for recorders of tests
	return true
}

// begin starts the wait for a piece of a body, and the time limit for it.
func (a *arrivals) begin(b *guardedBody) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[b] = true
	b.since = time.Now()
	until := b.until
	if b.each > 0 {
		until = b.since.Add(b.each)
	}
	_ = b.control.SetReadDeadline(until) // as above
}

// end ends the wait for a piece.
func (a *arrivals) end(b *guardedBody, bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, b)
	b.waited += time.Since(b.since)
	b.arrived += bytes
}

// guardedBody limits the time in which a body, or each piece of it, has to arrive. It removes the
// deadline at the end of the body: the server continues to read in order to notice when the client
// disconnects, and would mistake a deadline for a disconnect.
type guardedBody struct {
	in      io.ReadCloser
	control *http.ResponseController
	ended   error // returned by every further Read

	arriving *arrivals // guards the fields below
	until    time.Time
	each     time.Duration
	since    time.Time     // when the server began to wait for the current piece
	waited   time.Duration // for the previous pieces
	arrived  int           // bytes
}

func (b *guardedBody) Read(p []byte) (int, error) {
	if b.ended != nil {
		return 0, b.ended
	}
	b.arriving.begin(b)
	n, err := b.in.Read(p)
	b.arriving.end(b, n)
	if err != nil {
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = errSlow
		case errors.Is(err, io.EOF):
			_ = b.control.SetReadDeadline(time.Time{})
		}
		b.ended = err
	}
	return n, err
}

func (b *guardedBody) Close() error { return b.in.Close() }

// callers admits requests with a token, limits the number of simultaneous requests, and limits
// their bodies.
func (g *guard) callers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(g.options.Public, r.URL.Path) {
			r.Body = http.NoBody
			h.ServeHTTP(w, r)
			return
		}
		if t := g.options.Tokens; t != nil && !t.admit(r.Header.Get("Authorization")) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="racflow"`)
			g.options.Refuse(r, newProblem(http.StatusUnauthorized, "send a valid token as Authorization: Bearer TOKEN")).ServeHTTP(w, r)
			return
		}
		if !g.enter(r.Context()) {
			p := newProblem(http.StatusTooManyRequests, "as many requests as this server takes at a time are under way")
			p.RetryAfter = time.Second
			g.options.Refuse(r, p).ServeHTTP(w, r)
			return
		}
		defer func() { <-g.working }()
		if p := g.bound(w, r); p != nil {
			g.options.Refuse(r, p).ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// GuardOptions configure a Guard.
type GuardOptions struct {
	Local   bool     // the server listens on a loopback address, so a request's Host must be a loopback name
	Hosts   []string // further names of the server; without Local and Hosts, any name is accepted
	Origins []string // origins of web pages that may call, such as https://example.com; none: only the server's own
	Tokens  *Tokens  // nil: everybody may call
	// Public lists paths that need no token and are not counted, such as /healthz.
	Public []string

	Concurrency int                      // simultaneous requests; further ones get 429; 0: 1024
	Body        int64                    // maximum bytes of a body; 0: 4 MiB
	Streams     func(*http.Request) bool // selects requests whose bodies may have any length, read piece by piece; nil: none
	Header      time.Duration            // time limit for the headers of a request; 0: 10 s
	Arrive      time.Duration            // time limit for a whole body; 0: 30 s
	Stall       time.Duration            // time limit for the next piece of a streamed body, and for a client to accept a piece of an answer; 0: 30 s
	Idle        time.Duration            // time limit for a connection between requests; 0: 2 min

	// Watch is called at the start of each request. It returns the request to serve, and a function
	// to call at its end; may be nil.
	Watch func(*http.Request) (*http.Request, func(RequestSeen))
	// Refuse returns the handler that refuses a request, in the form of its path; nil: a problem
	// document.
	Refuse func(*http.Request, *Problem) http.Handler
	Log    *slog.Logger // nil: no log
}

// RequestSeen describes a finished request.
type RequestSeen struct {
	Status int
	Bytes  int64 // of the answer
	Took   time.Duration
}

// defaults replaces zero values by the defaults.
func (o GuardOptions) defaults() GuardOptions {
	o.Concurrency = cmp.Or(o.Concurrency, 1024)
	o.Body = cmp.Or(o.Body, 4<<20)
	o.Header = cmp.Or(o.Header, 10*time.Second)
	o.Arrive = cmp.Or(o.Arrive, 30*time.Second)
	o.Stall = cmp.Or(o.Stall, 30*time.Second)
	o.Idle = cmp.Or(o.Idle, 2*time.Minute)
	if o.Streams == nil {
		o.Streams = func(*http.Request) bool { return false }
	}
	if o.Refuse == nil {
		o.Refuse = func(_ *http.Request, p *Problem) http.Handler { return p }
	}
	if o.Watch == nil {
		o.Watch = func(r *http.Request) (*http.Request, func(RequestSeen)) { return r, func(RequestSeen) {} }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// newGuard puts a guard before a handler. An invalid origin is an error.
func newGuard(h http.Handler, o GuardOptions) (*guard, error) {
	o = o.defaults()
	g := &guard{options: o, pages: http.NewCrossOriginProtection(), working: make(chan struct{}, o.Concurrency), arriving: arrivals{waiting: map[*guardedBody]bool{}}}
	for _, origin := range o.Origins {
		if err := g.pages.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("%q is no origin: write it as https://example.com: %w", origin, err)
		}
	}
	g.inside = g.callers(h)
	if len(o.Origins) > 0 {
		g.inside = cors.New(cors.Options{
			AllowedOrigins: o.Origins, AllowedMethods: []string{http.MethodGet, http.MethodPost, http.MethodDelete},
			AllowedHeaders: []string{"*"}, ExposedHeaders: []string{"Retry-After", "Mcp-Session-Id"}, MaxAge: 600,
		}).Handler(g.inside)
	}
	return g, nil
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	r, end := g.options.Watch(r)
	out := newWriter(w, g.options.Stall)
	defer func() {
		p := recover()
		defer func() { end(RequestSeen{out.code(), out.bytes, time.Since(begun)}) }()
		switch p {
		case nil:
		case http.ErrAbortHandler:
			panic(p)
		default:
			g.options.Log.Error("a request could not be served", "error", p, "stack", string(debug.Stack()))
			if out.status != 0 { // the answer has begun: the client must notice that it is incomplete
				panic(http.ErrAbortHandler)
			}
			newProblem(http.StatusInternalServerError, "racflow could not serve this request: its log says why").ServeHTTP(out, r)
		}
	}()
	g.expect(out, r)
	out.Header().Set("X-Content-Type-Options", "nosniff")
	if !g.options.known(r) {
		newProblem(http.StatusMisdirectedRequest, fmt.Sprintf("the Host %q is none of this server's: call it by its address, or start it with that name", r.Host)).ServeHTTP(out, r)
		return
	}
	if err := g.pages.Check(r); err != nil {
		newProblem(http.StatusForbidden, "web pages of another origin may not call this server, unless it was started with their origin").ServeHTTP(out, r)
		return
	}
	g.inside.ServeHTTP(out, r)
}

// writer records the status and size of an answer, and limits the time in which the client has to
// accept each piece.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	status  int // 0: not written yet
	bytes   int64
}

func newWriter(w http.ResponseWriter, stall time.Duration) *writer {
	return &writer{ResponseWriter: w, control: http.NewResponseController(w), stall: stall}
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) code() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		w.patience()
	}
	w.ResponseWriter.WriteHeader(status)
}

// patience restarts the client's time limit.
func (w *writer) patience() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.stall)) // fails only for recorders of tests
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	w.status = w.code()
	w.patience()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Flush implements http.Flusher, which some handlers look for.
func (w *writer) Flush() {
	w.status = w.code()
	w.patience()
	_ = w.control.Flush()
}
