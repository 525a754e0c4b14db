package telemetry

import (
	"context"
	"net/http"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/racflow/racflow/sdk"
)

// The headers of W3C Trace Context, and the variables of the environment of that name.
const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
)

var headers propagation.TraceContext

// remote returns ctx within a caller's trace; as it is where that is none, or not one.
func remote(ctx context.Context, t sdk.Trace) context.Context {
	if t.Parent == "" {
		return ctx
	}
	return headers.Extract(ctx, propagation.MapCarrier{traceparent: t.Parent, tracestate: t.State})
}

// traced returns ctx with its span as what stages pass on.
func traced(ctx context.Context) context.Context {
	carrier := propagation.MapCarrier{}
	headers.Inject(ctx, carrier)
	return sdk.WithTrace(ctx, sdk.Trace{Parent: carrier[traceparent], State: carrier[tracestate]})
}

// Command starts the span of a whole command, as a part of the trace that the variables
// TRACEPARENT and TRACESTATE of the environment name. end ends it.
func (t *Telemetry) Command(ctx context.Context, name string) (within context.Context, end func(error)) {
	if t.provider == nil {
		return ctx, func(error) {}
	}
	from := sdk.Trace{Parent: os.Getenv("TRACEPARENT"), State: os.Getenv("TRACESTATE")}
	ctx, span := t.tracer.Start(remote(ctx, from), name)
	return traced(ctx), func(err error) {
		if err != nil {
			t.fail(span, err)
		}
		span.End()
	}
}

// Serving starts the span of a request that a server answers by a route, as a part of the
// trace that its headers name. What it returns goes to those that answer it: an
// observe.Item has its trace (sdk.TraceOf). end is given the status code.
func (t *Telemetry) Serving(r *http.Request, route string) (within context.Context, end func(code int)) {
	ctx := r.Context()
	if t.provider == nil {
		return ctx, func(int) {}
	}
	ctx, span := t.tracer.Start(headers.Extract(ctx, propagation.HeaderCarrier(r.Header)), r.Method+" "+route, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("http.route", route)))
	return traced(ctx), func(code int) {
		span.SetAttributes(attribute.Int("http.response.status_code", code))
		if code >= 500 {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// fail marks a span as that of something that failed. What it was stands in the message of
// the error, which may quote a text.
func (t *Telemetry) fail(span trace.Span, err error) {
	t.failAs(span, errorTypes[sdk.CodeOf(err)], err)
}

// errorTypes are what spans say of an error instead of its message.
var errorTypes = map[sdk.Code]string{
	sdk.CodeInternal: "internal", sdk.CodeInvalid: "invalid", sdk.CodeTransient: "transient", sdk.CodeCancelled: "cancelled",
	sdk.CodeDeadline: "deadline", sdk.CodeUnavailable: "unavailable", sdk.CodeStopped: "stopped", sdk.CodeRefused: "refused",
}

func (t *Telemetry) failAs(span trace.Span, kind string, err error) {
	message := ""
	if t.texts && err != nil {
		message = err.Error()
	}
	span.SetStatus(codes.Error, message)
	span.SetAttributes(attribute.String("error.type", kind))
}
