package telemetry

import (
	"context"
	"net/http"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// Batch implements outcome.Observer.
func (t *Telemetry) Batch(ctx context.Context, pipeline string, items []outcome.ObservedItem) (context.Context, func([]outcome.Result)) {
	working := t.metrics.inProgress.WithLabelValues(pipeline)
	working.Add(float64(len(items)))
	var b *batch
	if t.provider != nil {
		ctx, b = t.begin(ctx, pipeline, items)
	}
	return ctx, func(results []outcome.Result) {
		working.Sub(float64(len(items)))
		t.count(pipeline, results)
		if b != nil {
			b.end(t, results)
		}
	}
}

// The outcomes of items, as outcome.Totals counts them.
const (
	answered  = "answered"
	undecided = "undecided"
	failed    = "failed"
)

func outcomeOf(r *outcome.Result) string {
	switch {
	case r.Failure != nil:
		return failed
	case r.Answer == "" && !r.RetrievalOnly:
		return undecided
	}
	return answered
}

func (t *Telemetry) count(pipeline string, results []outcome.Result) {
	outcomes, flagged, abstained := map[string]int{}, 0, map[string]int{}
	for i := range results {
		r := &results[i]
		outcomes[outcomeOf(r)]++
		if r.Flagged {
			flagged++
		}
		// All votes of a voter are adjacent.
		for votes := r.Votes; len(votes) > 0; {
			n, accepted := 0, false
			for n < len(votes) && votes[n].Voter == votes[0].Voter {
				accepted = accepted || votes[n].Accepted
				n++
			}
			if !accepted {
				abstained[votes[0].Voter]++
			}
			votes = votes[n:]
		}
	}
	for what, n := range outcomes {
		t.metrics.items.WithLabelValues(pipeline, what).Add(float64(n))
	}
	t.metrics.flagged.WithLabelValues(pipeline).Add(float64(flagged))
	for voter, n := range abstained {
		t.metrics.abstentions.WithLabelValues(pipeline, "sample."+voter).Add(float64(n))
	}
}

// batch holds the spans of a batch and of its items.
type batch struct {
	span  trace.Span
	items map[string][]trace.Span // by item id, in order: an id may occur twice
}

// begin starts a span for each item in its caller's trace, and a span for the batch, which links
// the items. The span of a single item is the parent of the batch, because the stages work for it
// alone. A batch of items from several traces has a trace of its own; these items link back to it.
func (t *Telemetry) begin(ctx context.Context, pipeline string, items []outcome.ObservedItem) (context.Context, *batch) {
	b := &batch{items: make(map[string][]trace.Span, len(items))}
	named := attribute.String("racflow.pipeline", pipeline)
	links := make([]trace.Link, len(items))
	within := ctx
	var apart []trace.Span // spans of items with a trace of their own, which get a link to the batch
	for i, item := range items {
		of, span := t.tracer.Start(remote(ctx, item.Trace), "item "+pipeline, trace.WithAttributes(named, attribute.String("racflow.item.id", item.ID)))
		b.items[item.ID] = append(b.items[item.ID], span)
		links[i].SpanContext = span.SpanContext()
		switch {
		case len(items) == 1:
			within = of
		case item.Trace.Parent != "":
			apart = append(apart, span)
		}
	}
	options := []trace.SpanStartOption{trace.WithLinks(links...), trace.WithAttributes(named, attribute.Int("racflow.items", len(items)))}
	if len(apart) > 0 {
		options = append(options, trace.WithNewRoot()) // the batch belongs to no item's trace
	}
	within, b.span = t.tracer.Start(within, "batch "+pipeline, options...)
	for _, s := range apart {
		s.AddLink(trace.Link{SpanContext: b.span.SpanContext()})
	}
	return traced(within), b
}

// end ends the spans. Spans of items without a result get no outcome.
func (b *batch) end(t *Telemetry, results []outcome.Result) {
	for i := range results {
		r := &results[i]
		spans := b.items[r.ID]
		if len(spans) == 0 {
			continue
		}
		span := spans[0]
		b.items[r.ID] = spans[1:]
		if span.IsRecording() {
			span.SetAttributes(t.about(r)...)
			if r.Failure != nil {
				t.fail(span, r.Failure.Err)
			}
		}
		span.End()
	}
	for _, spans := range b.items {
		for _, span := range spans {
			span.End()
		}
	}
	b.span.End()
}

// about returns the span attributes of an item with a result.
func (t *Telemetry) about(r *outcome.Result) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("racflow.outcome", outcomeOf(r)),
		attribute.Float64("racflow.agreement", r.Agreement), attribute.Float64("racflow.confidence", r.Confidence), attribute.Float64("racflow.unknown", r.Unknown),
	}
	if r.Flagged {
		all = append(all, attribute.Bool("racflow.flagged", true))
	}
	if r.Cost > 0 {
		all = append(all, attribute.Float64("racflow.cost", r.Cost))
	}
	if len(r.Missing) > 0 {
		all = append(all, attribute.StringSlice("racflow.missing", r.Without()))
	}
	if t.texts {
		texts := []attribute.KeyValue{attribute.String("racflow.text", r.Text), attribute.String("racflow.answer", r.Answer), attribute.String("racflow.reason", r.Reason)}
		all = append(all, slices.DeleteFunc(texts, func(a attribute.KeyValue) bool { return a.Value.AsString() == "" })...)
	}
	return all
}

// Call implements outcome.Observer.
func (t *Telemetry) Call(ctx context.Context, c progress.StageCall) (context.Context, func(progress.CallDone)) {
	var span trace.Span
	if t.provider != nil {
		attributes := []attribute.KeyValue{
			attribute.String("racflow.pipeline", c.Pipeline), attribute.String("racflow.stage", c.Stage),
			attribute.String("racflow.use", c.Use), attribute.Int("racflow.rows", c.Rows),
		}
		if c.Model != "" {
			attributes = append(attributes, attribute.String(requestModel, c.Model))
		}
		ctx, span = t.tracer.Start(ctx, c.Stage, trace.WithAttributes(attributes...))
		ctx = traced(ctx)
	}
	start := time.Now()
	return ctx, func(d progress.CallDone) {
		m := t.metrics
		m.seconds.WithLabelValues(c.Pipeline, c.Stage).Observe(time.Since(start).Seconds())
		m.rows.WithLabelValues(c.Pipeline, c.Stage).Add(float64(c.Rows))
		if d.Err != nil {
			d.RowErrors = c.Rows
		}
		m.errors.WithLabelValues(c.Pipeline, c.Stage).Add(float64(d.RowErrors))
		if span == nil {
			return
		}
		if d.RowErrors > 0 {
			span.SetAttributes(attribute.Int("racflow.row_errors", d.RowErrors))
		}
		if d.Err != nil {
			t.fail(span, d.Err)
		}
		span.End()
	}
}

// CacheHits implements outcome.Observer.
func (t *Telemetry) CacheHits(pipeline, stage string, hits int) {
	t.metrics.cacheHits.WithLabelValues(pipeline, stage).Add(float64(hits))
}

// Retried implements outcome.Observer.
func (t *Telemetry) Retried(pipeline, stage string) {
	t.metrics.retries.WithLabelValues(pipeline, stage).Inc()
}

// Restarted implements outcome.Observer.
func (t *Telemetry) Restarted(stage, _ string) { t.metrics.restarts.WithLabelValues(stage).Inc() }

// Knowledge implements outcome.Observer.
func (t *Telemetry) Knowledge(name string, took time.Duration, err error) {
	if err != nil {
		t.metrics.unmade.WithLabelValues(name).Inc()
		return
	}
	t.metrics.knowledge.WithLabelValues(name).Set(took.Seconds())
}

// Queued implements outcome.Observer.
func (t *Telemetry) Queued(pipeline string, items int) {
	t.metrics.queue.WithLabelValues(pipeline).Add(float64(items))
}

// Swapped implements outcome.Observer.
func (t *Telemetry) Swapped(pipeline string) { t.metrics.swaps.WithLabelValues(pipeline).Inc() }

// The names of W3C Trace Context: headers and, in upper case, environment variables.
const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
)

var headers propagation.TraceContext

// remote returns ctx within a caller's trace; ctx itself if the caller has no valid trace.
func remote(ctx context.Context, t sdk.Trace) context.Context {
	if t.Parent == "" {
		return ctx
	}
	return headers.Extract(ctx, propagation.MapCarrier{traceparent: t.Parent, tracestate: t.State})
}

// traced returns ctx with its span as the trace that stages pass on.
func traced(ctx context.Context) context.Context {
	carrier := propagation.MapCarrier{}
	headers.Inject(ctx, carrier)
	return sdk.WithTrace(ctx, sdk.Trace{Parent: carrier[traceparent], State: carrier[tracestate]})
}

// Command starts the span of a whole command, in the trace that the environment variables
// TRACEPARENT and TRACESTATE name. end ends the span.
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

// Serving starts the span of a request to a server's route, in the trace that its headers name. The
// returned context carries the trace (sdk.TraceOf), for outcome.ObservedItem. end takes the status
// code.
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

// fail marks a span as failed. Only the error's message has the cause, and it may quote a text.
func (t *Telemetry) fail(span trace.Span, err error) {
	t.failAs(span, errorTypes[sdk.CodeOf(err)], err)
}

// errorTypes are the error types in spans, which replace the messages.
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
