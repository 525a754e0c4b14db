package serve

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/show/telemetry"
)

// info describes a pipeline and its state.
type info struct {
	Name       string             `json:"name"`
	Answers    journal.AnswerKind `json:"answers,omitempty" enum:"labels,texts,passages" doc:"What it answers with; unknown before it has started"`
	Labels     []string           `json:"labels,omitempty" doc:"All that it can answer; in GET /v1/pipelines/NAME alone"`
	Ready      bool               `json:"ready"`
	Since      *time.Time         `json:"since,omitempty" doc:"When what answers now began to"`
	Rebuilding bool               `json:"rebuilding" doc:"A newer knowledge is being built; meanwhile the older one answers"`
	Error      string             `json:"error,omitempty" doc:"Why the file or what it reads cannot be used since it changed: what it was before answers"`
	Waiting    int                `json:"waiting" doc:"Items that wait"`
	Working    int                `json:"working" doc:"Items that are under way"`
	Knowledge  []knowledge        `json:"knowledge" doc:"What is searched"`
}

// knowledge describes a generation of knowledge that is searched.
type knowledge struct {
	Name       string `json:"name"`
	Collection string `json:"collection"`
	Content    string `json:"content" doc:"Hash of what it was made from"`
	Attached   bool   `json:"attached,omitempty" doc:"Another program makes it: its rows may change under one hash"`
}

func describe(p Pipeline, labels bool) info {
	st := p.Status()
	i := info{
		Name: p.Name(), Answers: st.Answers, Ready: st.Ready, Rebuilding: st.Rebuilding, Error: st.Error,
		Waiting: st.Waiting, Working: st.Working, Knowledge: []knowledge{},
	}
	if !st.Since.IsZero() {
		i.Since = &st.Since
	}
	if labels {
		i.Labels = st.Labels
	}
	for _, k := range st.Knowledge {
		i.Knowledge = append(i.Knowledge, knowledge{k.Name, k.Collection, k.Content, k.Attached})
	}
	return i
}

type listed struct {
	Body struct {
		Pipelines []info `json:"pipelines"`
	}
}

type one struct {
	Status int
	Body   info
}

// management registers the routes that list and rebuild pipelines.
func (s *Server) management() {
	huma.Register(s.api, huma.Operation{
		OperationID: "listPipelines", Method: http.MethodGet, Path: "/v1/pipelines", Summary: "List the pipelines", Tags: []string{"pipelines"},
		Errors: []int{http.StatusInternalServerError},
	}, func(context.Context, *struct{}) (*listed, error) {
		out := &listed{}
		out.Body.Pipelines = []info{}
		for _, p := range s.pipelines() {
			out.Body.Pipelines = append(out.Body.Pipelines, describe(p, false))
		}
		return out, nil
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "getPipeline", Method: http.MethodGet, Path: "/v1/pipelines/{name}", Summary: "Describe a pipeline", Tags: []string{"pipelines"},
		Errors: []int{http.StatusNotFound},
	}, func(_ context.Context, in *struct {
		Name string `path:"name"`
	}) (*one, error) {
		p := s.pipelines.Named(in.Name)
		if p == nil {
			return nil, unknown(in.Name)
		}
		return &one{http.StatusOK, describe(p, true)}, nil
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "rebuild", Method: http.MethodPost, Path: "/v1/pipelines/{name}/rebuild", Summary: "Bring the knowledge of a pipeline up to date", Tags: []string{"pipelines"},
		Description: "The knowledge is built in the background, and answers when it is complete. Until then the older one does.",
		Errors:      []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable},
		Responses:   responses{}.and(as("application/json", schema[info](s)), http.StatusAccepted),
	}, func(ctx context.Context, in *struct {
		Name string `path:"name"`
		Wait bool   `query:"wait" doc:"Answer when it is complete"`
	}) (*one, error) {
		p := s.pipelines.Named(in.Name)
		if p == nil {
			return nil, unknown(in.Name)
		}
		if !in.Wait {
			s.rebuild(p)
			return &one{http.StatusAccepted, describe(p, false)}, nil
		}
		if err := p.Rebuild(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, newProblem(http.StatusServiceUnavailable, "the server is ending")
			}
			return nil, newProblem(http.StatusConflict, "what answers stays as it was: "+err.Error())
		}
		return &one{http.StatusOK, describe(p, false)}, nil
	})
}

// rebuild rebuilds a pipeline in the background. If one rebuild is running and another is waiting,
// it does nothing, because the waiting rebuild will see the same changes.
func (s *Server) rebuild(p Pipeline) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil { // the server is ending and starts no more rebuilds
		return
	}
	room := s.rebuilds[p.Name()]
	if room == nil {
		room = make(chan struct{}, 2)
		s.rebuilds[p.Name()] = room
	}
	select {
	case room <- struct{}{}:
	default:
		return
	}
	s.behind.Go(func() {
		defer func() { <-room }()
		if err := p.Rebuild(s.life); err != nil {
			s.options.Log.Error("the knowledge was not rebuilt", "pipeline", p.Name(), "error", err)
		}
	})
}

// watch returns a function that records requests in the log (without their contents), in metrics
// and in traces.
func (s *Server) watch(t *telemetry.Telemetry) func(*http.Request) (*http.Request, func(RequestSeen)) {
	count := func(string, RequestSeen) {}
	if t != nil {
		count = counting(t.Registry())
	}
	return func(r *http.Request) (*http.Request, func(RequestSeen)) {
		_, route := s.mux.Handler(r)
		route = cmp.Or(route, "none")
		end := func(int) {}
		if t != nil {
			ctx, done := t.Serving(r, route)
			r, end = r.WithContext(ctx), done
		}
		return r, func(seen RequestSeen) {
			end(seen.Status)
			count(route, seen)
			s.options.Log.LogAttrs(r.Context(), slog.LevelInfo, "request",
				slog.String("route", route), slog.Int("status", seen.Status), slog.Int64("bytes", seen.Bytes), slog.Duration("took", seen.Took))
		}
	}
}

// buckets are the bounds of the histogram in seconds.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func counting(r *prometheus.Registry) func(route string, seen RequestSeen) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "racflow_http_requests_total", Help: "requests by the status of the answer"}, []string{"route", "code"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "racflow_http_seconds", Help: "from the first to the last byte", Buckets: buckets}, []string{"route"})
	r.MustRegister(requests, seconds)
	return func(route string, seen RequestSeen) {
		requests.WithLabelValues(route, strconv.Itoa(seen.Status)).Inc()
		seconds.WithLabelValues(route).Observe(seen.Took.Seconds())
	}
}
