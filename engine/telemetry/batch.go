package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/racflow/racflow/engine/observe"
	"github.com/racflow/racflow/engine/outcome"
)

// Batch implements observe.Observer.
func (t *Telemetry) Batch(ctx context.Context, pipeline string, items []observe.Item) (context.Context, func([]outcome.Result)) {
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

// What becomes of an item, as outcome.Totals counts it.
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

// count counts results.
func (t *Telemetry) count(pipeline string, results []outcome.Result) {
	outcomes, flagged, abstained := map[string]int{}, 0, map[string]int{}
	for i := range results {
		r := &results[i]
		outcomes[outcomeOf(r)]++
		if r.Flagged {
			flagged++
		}
		// The votes of a voter stand together.
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

// batch is the spans of a batch and of the items in it.
type batch struct {
	span  trace.Span
	items map[string][]trace.Span // by id, in their order: an id may stand there twice
}

// begin starts the span of each item as a part of its caller's trace, and that of the batch,
// which links them. Where there is one item its stages work for it alone: the batch is a
// part of its span. Items of several traces have a batch with a trace of its own, which they
// link.
func (t *Telemetry) begin(ctx context.Context, pipeline string, items []observe.Item) (context.Context, *batch) {
	b := &batch{items: make(map[string][]trace.Span, len(items))}
	named := attribute.String("racflow.pipeline", pipeline)
	links := make([]trace.Link, len(items))
	within := ctx
	var apart []trace.Span // of items that come with a trace of their own, which are to lead to the batch
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
		options = append(options, trace.WithNewRoot()) // it is of none of them more than of the others
	}
	within, b.span = t.tracer.Start(within, "batch "+pipeline, options...)
	for _, s := range apart {
		s.AddLink(trace.Link{SpanContext: b.span.SpanContext()})
	}
	return traced(within), b
}

// end ends the spans. Those of items that were left say nothing of an outcome.
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

// about are the attributes of an item that was answered.
func (t *Telemetry) about(r *outcome.Result) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("racflow.outcome", outcomeOf(r)),
		attribute.Float64("racflow.agreement", r.Agreement), attribute.Float64("racflow.confidence", r.Confidence),
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
