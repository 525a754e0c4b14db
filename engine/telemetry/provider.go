package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// newProvider makes what exports spans; nil: nobody wants any.
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
	if o.Worker != "" {
		process = append(process, attribute.String("service.instance.id", o.Worker))
	}
	about, err := resource.New(ctx, resource.WithAttributes(process...),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if o.TraceFile != "" {
		e, err := newFile(o.TraceFile)
		if err != nil {
			return nil, fmt.Errorf("traces: %w", err)
		}
		// A disk keeps up: a span that was made is a line in the file.
		exporters = append(exporters, sdktrace.WithBatcher(&reporting{SpanExporter: e, log: o.Log}, sdktrace.WithBlocking()))
	}
	return sdktrace.NewTracerProvider(append(exporters, sdktrace.WithResource(about))...), nil
}

// collector reports whether the environment names a collector of traces.
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

// reporting is an exporter whose first error is logged. The others would say the same.
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
