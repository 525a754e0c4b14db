package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/racflow/racflow/engine/observe"
)

// Options say what New makes.
type Options struct {
	TraceFile string       // spans are added to this file, as lines of OTLP/JSON; empty: none
	Texts     bool         // spans have texts of items, answers and messages of errors
	Service   string       // service.name of traces, unless the environment says it; empty: racflow
	Version   string       // of racflow
	Worker    string       // the name of a worker of runs on many machines, which all metrics have as a label, and traces as service.instance.id; empty: this is none
	Log       *slog.Logger // gets what goes wrong with the export of traces; nil: nothing
}

// Telemetry collects metrics and traces of what it observes. Its methods may be called by
// several goroutines at once.
type Telemetry struct {
	registry *prometheus.Registry
	metrics  *metrics
	texts    bool
	provider *sdktrace.TracerProvider // nil: nobody traces
	tracer   trace.Tracer

	mu    sync.Mutex
	calls map[call]*callMetrics
}

var _ observe.Observer = (*Telemetry)(nil)

// New makes a Telemetry. Traces go to Options.TraceFile and to the collector that the
// environment names; where there is neither, there are metrics alone. Close it.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Telemetry{registry: prometheus.NewRegistry(), texts: o.Texts, calls: map[call]*callMetrics{}}
	register := prometheus.Registerer(t.registry)
	if o.Worker != "" {
		register = prometheus.WrapRegistererWith(prometheus.Labels{"worker": o.Worker}, register)
	}
	t.metrics = newMetrics(register, o.Version)
	var err error
	if t.provider, err = newProvider(ctx, o); err != nil {
		return nil, err
	}
	t.tracer = noop.NewTracerProvider().Tracer("")
	if t.provider != nil {
		t.tracer = t.provider.Tracer(scope, trace.WithInstrumentationVersion(o.Version))
	}
	return t, nil
}

// scope names what makes the spans.
const scope = "github.com/racflow/racflow"

// Registry is where metrics are registered.
func (t *Telemetry) Registry() *prometheus.Registry { return t.registry }

// Handler serves the metrics in the formats of Prometheus.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{Registry: t.registry, EnableOpenMetrics: true})
}

// Traces reports whether anybody wants spans.
func (t *Telemetry) Traces() bool { return t.provider != nil }

// Close exports the spans that have ended, as far as that is possible until ctx ends.
func (t *Telemetry) Close(ctx context.Context) error {
	if t.provider == nil {
		return nil
	}
	return errors.Join(t.provider.ForceFlush(ctx), t.provider.Shutdown(ctx))
}
