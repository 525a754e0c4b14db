package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/racflow/racflow/engine/internal/run/outcome"
)

// Telemetry collects metrics and traces of the observed work. Several goroutines may call its
// methods at once.
type Telemetry struct {
	registry *prometheus.Registry
	metrics  *metrics
	texts    bool
	provider *sdktrace.TracerProvider // nil: no traces
	tracer   trace.Tracer
}

// metrics holds the metrics that the package's documentation lists.
type metrics struct {
	items, flagged, abstentions       *prometheus.CounterVec
	inProgress, queue                 *prometheus.GaugeVec
	seconds                           *prometheus.HistogramVec
	rows, errors, retries, restarts   *prometheus.CounterVec
	requests, tokens, cost, cacheHits *prometheus.CounterVec
	sending                           *prometheus.GaugeVec
	knowledge                         *prometheus.GaugeVec
	unmade, swaps                     *prometheus.CounterVec
}

// buckets are the histogram bounds for calls in seconds: a local voter takes a millisecond for a
// batch, a language model half a minute.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func newMetrics(r prometheus.Registerer, version string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "racflow_" + name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "racflow_" + name, Help: help}, labels)
		r.MustRegister(g)
		return g
	}
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "racflow_stage_seconds", Help: "time of a stage's calls; a call takes a batch of rows", Buckets: buckets,
	}, []string{"pipeline", "stage"})
	r.MustRegister(seconds, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge("build_info", "1", "version", "go_version").WithLabelValues(version, runtime.Version()).Set(1)
	return &metrics{
		seconds:     seconds,
		items:       counter("items_total", "items by what became of them: answered, undecided, failed", "pipeline", "outcome"),
		flagged:     counter("flagged_total", "answers that a person should look at", "pipeline"),
		abstentions: counter("abstentions_total", "items to which a voter gave no answer that counts", "pipeline", "stage"),
		inProgress:  gauge("items_in_progress", "items on their way through the stages", "pipeline"),
		queue:       gauge("queue_items", "items that wait for a batch, of pipelines that are served", "pipeline"),
		rows:        counter("stage_rows_total", "rows of these calls", "pipeline", "stage"),
		errors:      counter("stage_errors_total", "rows that failed; another try may have succeeded", "pipeline", "stage"),
		retries:     counter("retries_total", "calls that were made again after a failure that may pass", "pipeline", "stage"),
		restarts:    counter("stage_restarts_total", "processes that ended and were started again", "stage"),
		requests:    counter("requests_total", "requests to services: ok, busy, down, left, refused, denied, unsent", "pipeline", "stage", "status"),
		sending:     gauge("requests", "requests to services now: waiting, sent", "pipeline", "stage", "state"),
		tokens:      counter("tokens_total", "tokens that services reported: input (with cached ones), cached, output", "pipeline", "stage", "kind"),
		cost:        counter("cost_total", "money that requests took, by the prices in the file", "pipeline", "stage"),
		cacheHits:   counter("cache_hits_total", "replies taken from the response cache", "pipeline", "stage"),
		knowledge:   gauge("knowledge_seconds", "what bringing a knowledge up to date took the last time", "knowledge"),
		unmade:      counter("knowledge_failures_total", "knowledge that could not be brought up to date", "knowledge"),
		swaps:       counter("knowledge_swaps_total", "changes of what a pipeline that is served answers from", "pipeline"),
	}
}

// newProvider returns the exporter of spans; nil: none is configured.
func newProvider(ctx context.Context, o Options) (*sdktrace.TracerProvider, error) {
	var exporters []sdktrace.TracerProviderOption
	collects, err := collector()
	if err != nil || !collects && o.TraceFile == "" {
		return nil, err
	}
	if collects {
		e, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("traces: %w", err)
		}
		exporters = append(exporters, sdktrace.WithBatcher(&reporting{SpanExporter: e, log: o.Log}))
	}
	process := []attribute.KeyValue{attribute.String("service.name", cmp.Or(o.Service, "racflow")), attribute.String("service.version", o.Version)}
	about, err := resource.New(ctx, resource.WithAttributes(process...),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if o.TraceFile != "" {
		to, err := newFile(o.TraceFile)
		if err != nil {
			return nil, fmt.Errorf("traces: %w", err)
		}
		e, err := otlptrace.New(ctx, to)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("traces: %w", err), to.Stop(ctx))
		}
		// The disk is fast enough to wait for: every span gets into the file.
		exporters = append(exporters, sdktrace.WithBatcher(&reporting{SpanExporter: e, log: o.Log}, sdktrace.WithBlocking()))
	}
	return sdktrace.NewTracerProvider(append(exporters, sdktrace.WithResource(about))...), nil
}

// collector reports whether the environment configures a collector of traces.
func collector() (bool, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	switch name := os.Getenv("OTEL_TRACES_EXPORTER"); name {
	case "none":
		return false, nil
	case "otlp", "":
		named := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
		if name == "" && !named {
			return false, nil
		}
	default:
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: racflow has otlp and none, and --trace FILE", name)
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	if protocol != "http/protobuf" {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: racflow speaks http/protobuf, for which collectors listen at port 4318", protocol)
	}
	return true, nil
}

// reporting is an exporter that logs only its first error, because later errors would repeat it.
type reporting struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	once sync.Once
}

// ExportSpans implements sdktrace.SpanExporter.
func (r *reporting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := r.SpanExporter.ExportSpans(ctx, spans); err != nil {
		r.once.Do(func() { r.log.Warn("spans could not be exported; more may be lost without a word", "error", err) })
	}
	return nil
}

// Options configures New.
type Options struct {
	TraceFile string       // file that gets spans as lines of OTLP/JSON, appended; empty: none
	Texts     bool         // spans have texts of items, answers and error messages
	Service   string       // service.name of traces, unless the environment sets it; empty: racflow
	Version   string       // of racflow
	Log       *slog.Logger // gets errors of the export of traces; nil: nothing
}

var _ outcome.Observer = (*Telemetry)(nil)

// New makes a Telemetry. Traces go to Options.TraceFile and to the collector that the environment
// names; without either, there are only metrics. The caller must Close it.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Telemetry{registry: prometheus.NewRegistry(), texts: o.Texts}
	t.metrics = newMetrics(t.registry, o.Version)
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

// scope is the instrumentation scope of the spans.
const scope = "github.com/racflow/racflow"

// Registry returns the registry of the metrics.
func (t *Telemetry) Registry() *prometheus.Registry { return t.registry }

// Handler serves the metrics in the formats of Prometheus.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{Registry: t.registry, EnableOpenMetrics: true})
}

// Traces reports whether spans are exported.
func (t *Telemetry) Traces() bool { return t.provider != nil }

// Close exports the ended spans, as far as it can before ctx ends.
func (t *Telemetry) Close(ctx context.Context) error {
	if t.provider == nil {
		return nil
	}
	return errors.Join(t.provider.ForceFlush(ctx), t.provider.Shutdown(ctx))
}
