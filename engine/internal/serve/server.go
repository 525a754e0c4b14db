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

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/show/telemetry"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk/support"
)

// Server answers requests from pipelines.
type Server struct {
	pipelines Pipelines
	options   Options
	mux       *routes
	api       huma.API
	guard     *guard

	ending chan struct{} // closed when the server begins to end
	end    func()
	life   context.Context // context of requests and background work
	stop   context.CancelFunc
	behind sync.WaitGroup

	mu       sync.Mutex
	rebuilds map[string]chan struct{} // by pipeline: a running rebuild, and a waiting rebuild
}

// health registers the routes that report the server's state.
func (s *Server) health() {
	state := as("application/json", schema[health](s))
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

// health is the state of the server.
type health struct {
	Status string `json:"status" enum:"ok,ready,starting,ending"`
}

func writeStatus(w http.ResponseWriter, code int, status string) {
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, "application/json", code, health{status})
}

// cutOff is how long cancelled requests may take to end after the grace period.
const cutOff = 5 * time.Second

// Serve answers requests until ctx ends. Then /readyz reports that the server is ending, the server
// accepts connections for Options.Drain more, and requests have Options.Grace to end. The error
// says that requests did not end in time, or why the server could not serve. Serve can be called
// only once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.behind.Wait()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop()
	}()
	server := newServer(s.guard, s.options.Guard)
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

// Pipeline has the methods of *live.Pipeline that a server needs.
type Pipeline interface {
	Name() string
	Definition() *pipeline.Pipeline
	Answer(context.Context, workspace.Item) (workspace.Result, error)
	Retrieve(context.Context, workspace.Item) ([]workspace.Candidate, error)
	Follow(context.Context, workspace.Item, func(live.Event)) (workspace.Result, error)
	Rebuild(context.Context) error
	Decide(context.Context, workspace.Item) (workspace.Result, error)
	Embed(context.Context, []string) ([][]float32, error)
	Status() live.Status
}

// Pipelines returns the served pipelines, in the order in which they are listed.
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

// Named returns the pipeline with a name; nil: there is none.
func (p Pipelines) Named(name string) Pipeline {
	for _, one := range p() {
		if one.Name() == name {
			return one
		}
	}
	return nil
}

// Options configure a Server.
type Options struct {
	Guard   GuardOptions
	Timeout time.Duration // time limit for one item; 0: 2 min
	Window  int           // items of a batch under way at the same time; 0: 256
	// Drain is how long an ending server still accepts connections, while /readyz reports the end;
	// after that, Grace is how long requests may take to end. 0: 0 and 30 s.
	Drain, Grace time.Duration
	// Aliases are further names of pipelines, such as jev-latest, for requests that name a model.
	Aliases map[string]string
	// Telemetry counts and traces requests, and provides GET /metrics; nil: none.
	Telemetry *telemetry.Telemetry
	Log       *slog.Logger // nil: no log
}

// New returns a server of pipelines.
func New(pipelines Pipelines, o Options) (*Server, error) {
	o.Timeout, o.Window, o.Grace = cmp.Or(o.Timeout, 2*time.Minute), cmp.Or(o.Window, 256), cmp.Or(o.Grace, 30*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Guard.Log = o.Log
	o.Guard.Public = []string{"/healthz", "/readyz"}
	o.Guard.Streams = func(r *http.Request) bool {
		return (strings.HasPrefix(r.URL.Path, "/v1/pipelines/") || decisionFormOf(r) != nil) && isLines(r)
	}
	o.Guard.Refuse = refuseInForm
	s := &Server{pipelines: pipelines, mux: &routes{}, ending: make(chan struct{}), rebuilds: map[string]chan struct{}{}}
	s.end = sync.OnceFunc(func() { close(s.ending) })
	s.life, s.stop = context.WithCancel(context.Background())
	o.Guard.Watch = s.watch(o.Telemetry)
	s.options = o
	var err error
	if s.guard, err = newGuard(http.HandlerFunc(s.route), o.Guard); err != nil {
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

// route serves a request. If no pattern matches, it answers with a Problem.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if _, pattern := s.mux.Handler(r); pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		other := *r
		other.Method = method
		if _, pattern := s.mux.Handler(&other); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if allowed == nil {
		newProblem(http.StatusNotFound, "there is nothing under this path: GET /openapi.json says what there is").ServeHTTP(w, r)
		return
	}
	allow := strings.Join(allowed, ", ")
	w.Header().Set("Allow", allow)
	newProblem(http.StatusMethodNotAllowed, "this path takes "+allow).ServeHTTP(w, r)
}
