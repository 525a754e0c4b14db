package guard

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/rs/cors"
)

// Options are who is let in, and with how much.
type Options struct {
	Local   bool     // the server listens on a loopback address: its Host has to be one
	Hosts   []string // further names that the server is called by; without Local and none, any name
	Origins []string // of web pages that may call, such as https://example.com; none: no page of another origin
	Tokens  *Tokens  // nil: everybody may call
	// Public are paths that take no token and are not counted, such as /healthz.
	Public []string

	Concurrency int                      // requests at a time; those beyond are refused with 429; 0: 1024
	Body        int64                    // bytes of a body; 0: 4 MiB
	Streams     func(*http.Request) bool // requests whose bodies are of any length, read piece by piece; nil: none
	Header      time.Duration            // for the headers of a request; 0: 10 s
	Arrive      time.Duration            // for a whole body; 0: 30 s
	Stall       time.Duration            // for the next piece of a stream's body, and for a client to take a piece of an answer; 0: 30 s
	Idle        time.Duration            // of a connection between requests; 0: 2 min

	// Watch is called at the beginning of each request. It returns the request as it is
	// served, and what is called at its end; may be nil.
	Watch func(*http.Request) (*http.Request, func(Seen))
	Log   *slog.Logger // nil: nothing
}

// Seen says what became of a request.
type Seen struct {
	Status int
	Bytes  int64 // of the answer
	Took   time.Duration
}

// Defaults returns the options with the values that stand for 0.
func (o Options) Defaults() Options {
	o.Concurrency = cmp.Or(o.Concurrency, 1024)
	o.Body = cmp.Or(o.Body, 4<<20)
	o.Header = cmp.Or(o.Header, 10*time.Second)
	o.Arrive = cmp.Or(o.Arrive, 30*time.Second)
	o.Stall = cmp.Or(o.Stall, 30*time.Second)
	o.Idle = cmp.Or(o.Idle, 2*time.Minute)
	if o.Streams == nil {
		o.Streams = func(*http.Request) bool { return false }
	}
	if o.Watch == nil {
		o.Watch = func(r *http.Request) (*http.Request, func(Seen)) { return r, func(Seen) {} }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Guard lets requests through to a handler.
type Guard struct {
	options Options
	pages   *http.CrossOriginProtection
	working chan struct{}
	inside  http.Handler // behind what is asked of pages
}

// New puts a guard before a handler. An origin that is none is an error.
func New(h http.Handler, o Options) (*Guard, error) {
	o = o.Defaults()
	g := &Guard{options: o, pages: http.NewCrossOriginProtection(), working: make(chan struct{}, o.Concurrency)}
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
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	r, end := g.options.Watch(r)
	out := newWriter(w, g.options.Stall)
	defer func() {
		p := recover()
		defer func() { end(Seen{out.code(), out.bytes, time.Since(begun)}) }()
		switch p {
		case nil:
		case http.ErrAbortHandler:
			panic(p)
		default:
			g.options.Log.Error("a request could not be served", "error", p, "stack", string(debug.Stack()))
			if out.status != 0 { // the answer has begun: the client must see that it is cut off
				panic(http.ErrAbortHandler)
			}
			NewProblem(http.StatusInternalServerError, "racflow could not serve this request: its log says why").ServeHTTP(out, r)
		}
	}()
	g.expect(out, r)
	out.Header().Set("X-Content-Type-Options", "nosniff")
	if !g.options.known(r) {
		NewProblem(http.StatusMisdirectedRequest, fmt.Sprintf("the Host %q is none of this server's: call it by its address, or start it with that name", r.Host)).ServeHTTP(out, r)
		return
	}
	if err := g.pages.Check(r); err != nil {
		NewProblem(http.StatusForbidden, "web pages of another origin may not call this server, unless it was started with their origin").ServeHTTP(out, r)
		return
	}
	g.inside.ServeHTTP(out, r)
}
