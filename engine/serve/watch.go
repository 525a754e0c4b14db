package serve

import (
	"cmp"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/racflow/racflow/engine/serve/guard"
	"github.com/racflow/racflow/engine/telemetry"
)

// watch returns what notes requests: in the log, without what they ask, in metrics and in
// traces.
func (s *Server) watch(t *telemetry.Telemetry) func(*http.Request) (*http.Request, func(guard.Seen)) {
	count := func(string, guard.Seen) {}
	if t != nil {
		count = counting(t.Registry())
	}
	return func(r *http.Request) (*http.Request, func(guard.Seen)) {
		_, route := s.mux.Handler(r)
		route = cmp.Or(route, "none")
		end := func(int) {}
		if t != nil {
			ctx, done := t.Serving(r, route)
			r, end = r.WithContext(ctx), done
		}
		return r, func(seen guard.Seen) {
			end(seen.Status)
			count(route, seen)
			s.options.Log.LogAttrs(r.Context(), slog.LevelInfo, "request",
				slog.String("route", route), slog.Int("status", seen.Status), slog.Int64("bytes", seen.Bytes), slog.Duration("took", seen.Took))
		}
	}
}

// buckets are the bounds of the histogram in seconds.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func counting(r *prometheus.Registry) func(route string, seen guard.Seen) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "racflow_http_requests_total", Help: "requests by the status of the answer"}, []string{"route", "code"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "racflow_http_seconds", Help: "from the first to the last byte", Buckets: buckets}, []string{"route"})
	r.MustRegister(requests, seconds)
	return func(route string, seen guard.Seen) {
		requests.WithLabelValues(route, strconv.Itoa(seen.Status)).Inc()
		seconds.WithLabelValues(route).Observe(seen.Took.Seconds())
	}
}
