package telemetry

import (
	"context"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// Attributes of OpenTelemetry's semantic conventions for generative AI.
const (
	operationName = "gen_ai.operation.name"
	providerName  = "gen_ai.provider.name"
	requestModel  = "gen_ai.request.model"
	inputTokens   = "gen_ai.usage.input_tokens"
	outputTokens  = "gen_ai.usage.output_tokens"
	cachedTokens  = "gen_ai.usage.cache_read.input_tokens"
)

var statuses = map[sdk.Status]string{
	sdk.StatusOK: "ok", sdk.StatusBusy: "busy", sdk.StatusDown: "down", sdk.StatusLeft: "left", sdk.StatusRefused: "refused", sdk.StatusDenied: "denied",
}

// Request implements outcome.Observer.
func (t *Telemetry) Request(ctx context.Context, r outcome.ServiceRequest) (func(), func(outcome.ServiceReply)) {
	waiting := t.metrics.sending.WithLabelValues(r.Pipeline, r.Stage, "waiting")
	under := t.metrics.sending.WithLabelValues(r.Pipeline, r.Stage, "sent")
	waiting.Inc()
	var span trace.Span
	if t.provider != nil {
		span = t.ask(ctx, r)
	}
	now := waiting
	sent := func() {
		now.Dec()
		now = under
		now.Inc()
		if span != nil {
			span.AddEvent("sent")
		}
	}
	return sent, func(reply outcome.ServiceReply) {
		now.Dec()
		status := "unsent"
		if s, ok := statuses[reply.Status]; ok {
			status = s
		}
		t.metrics.requests.WithLabelValues(r.Pipeline, r.Stage, status).Inc()
		t.metrics.cost.WithLabelValues(r.Pipeline, r.Stage).Add(reply.Cost)
		for kind, n := range map[string]uint64{"input": reply.Usage.InputTokens, "cached": reply.Usage.CachedTokens, "output": reply.Usage.OutputTokens} {
			t.metrics.tokens.WithLabelValues(r.Pipeline, r.Stage, kind).Add(float64(n))
		}
		if span == nil {
			return
		}
		if reply.Usage != (sdk.Usage{}) {
			span.SetAttributes(attribute.Int64(inputTokens, int64(reply.Usage.InputTokens)), attribute.Int64(outputTokens, int64(reply.Usage.OutputTokens)),
				attribute.Int64(cachedTokens, int64(reply.Usage.CachedTokens)), attribute.Float64("racflow.cost", reply.Cost))
		}
		if status != "ok" {
			t.failAs(span, status, reply.Err)
		}
		span.End()
	}
}

// operations are the conventions' names for requests of these kinds of stages.
var operations = map[sdk.Kind]string{sdk.KindEmbed: "embeddings", sdk.KindRerank: "rerank"}

// ask starts the span of a request.
func (t *Telemetry) ask(ctx context.Context, r outcome.ServiceRequest) trace.Span {
	operation := operations[r.Kind]
	if operation == "" {
		operation = "chat"
	}
	name := operation
	if r.Model != "" {
		name += " " + r.Model
	}
	attributes := []attribute.KeyValue{
		attribute.String(operationName, operation), attribute.String(providerName, r.Use), attribute.String(requestModel, r.Model),
		attribute.String("racflow.pipeline", r.Pipeline), attribute.String("racflow.stage", r.Stage),
	}
	if at, err := url.Parse(r.Endpoint); err == nil && at.Hostname() != "" {
		attributes = append(attributes, attribute.String("server.address", at.Hostname()))
		if port, err := strconv.Atoi(at.Port()); err == nil {
			attributes = append(attributes, attribute.Int("server.port", port))
		}
	}
	_, span := t.tracer.Start(remote(ctx, sdk.TraceOf(ctx)), name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	return span
}
