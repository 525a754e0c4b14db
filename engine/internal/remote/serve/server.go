package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/remote/live"
	"github.com/racflow/racflow/engine/internal/show/telemetry"
	"github.com/racflow/racflow/sdk/support"
)

// health registers what says how the server does.
func (s *Server) health() {
	state := as("application/json", schema[Health](s))
	s.get("/healthz", "health", "server", "Say that the process answers", responses{}.and(state, http.StatusOK), func(w http.ResponseWriter, _ *http.Request) { writeStatus(w, http.StatusOK, "ok") })
	s.get("/readyz", "ready", "server", "Say whether all pipelines answer", responses{}.and(state, http.StatusOK, http.StatusServiceUnavailable), func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-s.ending:
			writeStatus(w, http.StatusServiceUnavailable, "ending")
			return
		default:
		}
		for _, p := range s.pipelines() {
			if !p.Status().Ready {
				writeStatus(w, http.StatusServiceUnavailable, "starting")
				return
			}
		}
		writeStatus(w, http.StatusOK, "ready")
	})
	if t := s.options.Telemetry; t != nil {
		s.get("/metrics", "metrics", "server", "Return metrics for Prometheus", responses{}.and(asText("text/plain"), http.StatusOK), t.Handler().ServeHTTP)
	}
}

// Health is how the server is doing.
type Health struct {
	Status string `json:"status" enum:"ok,ready,starting,ending"`
}

func writeStatus(w http.ResponseWriter, code int, status string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(`{"status":"` + status + "\"}\n")) // the client may be gone
}

// cutOff is how long requests have that have to end because the grace is over.
const cutOff = 5 * time.Second

// Serve answers what comes in until ctx ends, and then ends as Options say: /readyz says
// so, connections are taken for as long as Drain is, and requests have the Grace to end.
// The error says that some had not, or why it could not serve. A server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.behind.Wait()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop()
	}()
	server := NewServer(s.guard, s.options.Guard)
	server.BaseContext = func(net.Listener) context.Context { return s.life }
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.end()
	ctx = context.WithoutCancel(ctx)
	if err := support.SleepFor(ctx, s.options.Drain); err != nil {
		return err
	}
	grace, cancel := context.WithTimeout(ctx, s.options.Grace)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		s.stop() // their contexts end
		last, cancel := context.WithTimeout(ctx, cutOff)
		defer cancel()
		err = errors.Join(fmt.Errorf("requests were cut off that had not ended after %s", s.options.Grace), ignoreLate(server.Shutdown(last)), server.Close())
	}
	if ended := <-failed; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

func ignoreLate(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// Pipeline is one that answers: a *live.Pipeline, whose methods these are.
type Pipeline interface {
	Name() string
	Definition() *pipeline.Pipeline
	Answer(context.Context, engine.Item) (engine.Result, error)
	Retrieve(context.Context, engine.Item) ([]engine.Candidate, error)
	Follow(context.Context, engine.Item, func(live.Event)) (engine.Result, error)
	Rebuild(context.Context) error
	Status() live.Status
}

// Pipelines returns all that are served, in the order in which they are listed.
type Pipelines func() []Pipeline

// Of returns the pipelines of a set.
func Of(set *live.Set) Pipelines {
	return func() []Pipeline {
		var all []Pipeline
		for _, p := range set.Pipelines() {
			all = append(all, p)
		}
		return all
	}
}

// Named returns the pipeline of a name; nil: there is none.
func (p Pipelines) Named(name string) Pipeline {
	for _, one := range p() {
		if one.Name() == name {
			return one
		}
	}
	return nil
}

// Options are how a server serves.
type Options struct {
	Guard   GuardOptions
	Timeout time.Duration // for the answer to one item; 0: 2 min
	Window  int           // items of a batch that are under way at a time; 0: 256
	// Drain is how long a server that ends goes on to take connections, while /readyz says that
	// it ends; then Grace is how long requests have to end. 0: 0 and 30 s.
	Drain, Grace time.Duration
	// Telemetry counts requests, has them in traces, and is what GET /metrics shows; nil: none.
	Telemetry *telemetry.Telemetry
	Log       *slog.Logger // nil: nothing
}

// Server answers requests.
type Server struct {
	pipelines Pipelines
	options   Options
	mux       *routes
	api       huma.API
	guard     *Guard

	ending chan struct{} // closed when the server begins to end
	end    func()
	life   context.Context // of requests, and of what goes on behind them
	stop   context.CancelFunc
	behind sync.WaitGroup

	mu       sync.Mutex
	rebuilds map[string]chan struct{} // by pipeline: one that is under way, and one that waits
}

// New returns a server of pipelines.
func New(pipelines Pipelines, o Options) (*Server, error) {
	o.Timeout, o.Window, o.Grace = cmp.Or(o.Timeout, 2*time.Minute), cmp.Or(o.Window, 256), cmp.Or(o.Grace, 30*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Guard.Log = o.Log
	o.Guard.Public = []string{"/healthz", "/readyz"}
	o.Guard.Streams = func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/pipelines/") && isLines(r) }
	s := &Server{pipelines: pipelines, mux: &routes{}, ending: make(chan struct{}), rebuilds: map[string]chan struct{}{}}
	s.end = sync.OnceFunc(func() { close(s.ending) })
	s.life, s.stop = context.WithCancel(context.Background())
	o.Guard.Watch = s.watch(o.Telemetry)
	s.options = o
	var err error
	if s.guard, err = NewGuard(http.HandlerFunc(s.route), o.Guard); err != nil {
		return nil, err
	}
	s.api = humago.New(s.mux, huma.Config{
		OpenAPI: document(),
		Formats: huma.DefaultFormats, DefaultFormat: "application/json",
	})
	s.health()
	s.describe()
	s.items()
	s.management()
	return s, nil
}

// Handler is the server as a handler, guarded.
func (s *Server) Handler() http.Handler { return s.guard }

// Pipelines are those that are served.
func (s *Server) Pipelines() Pipelines { return s.pipelines }

// Timeout is what the answer to one item may take.
func (s *Server) Timeout() time.Duration { return s.options.Timeout }

// Ending is closed when the server begins to end: what waits for a client, rather than
// works for it, ends then.
func (s *Server) Ending() <-chan struct{} { return s.ending }

// route serves a request, and has those that no pattern fits answered as all problems are.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	h, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	var said status
	h.ServeHTTP(&said, r)
	detail := "there is nothing under this path: GET /openapi.json says what there is"
	if allow := said.Header().Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
		detail = "this path takes " + allow
	}
	if said.code < http.StatusBadRequest {
		said.code = http.StatusNotFound // nothing is under the path that this one would be cleaned to, either
	}
	NewProblem(said.code, detail).ServeHTTP(w, r)
}

// status takes from a response its status and headers.
type status struct {
	code   int
	header http.Header
}

// Header implements http.ResponseWriter.
func (s *status) Header() http.Header {
	if s.header == nil {
		s.header = http.Header{}
	}
	return s.header
}

// WriteHeader implements http.ResponseWriter.
func (s *status) WriteHeader(code int) { s.code = code }

// Write implements http.ResponseWriter.
func (s *status) Write(p []byte) (int, error) { return len(p), nil }
