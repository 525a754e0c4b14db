package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/racflow/racflow/engine/observe"
)

// call is what metrics of calls are counted by.
type call struct{ pipeline, stage string }

type callMetrics struct {
	seconds      prometheus.Observer
	rows, errors prometheus.Counter
}

// of returns the metrics of a stage's calls.
func (t *Telemetry) of(c call) *callMetrics {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.calls[c]
	if m == nil {
		m = &callMetrics{
			t.metrics.seconds.WithLabelValues(c.pipeline, c.stage),
			t.metrics.rows.WithLabelValues(c.pipeline, c.stage), t.metrics.errors.WithLabelValues(c.pipeline, c.stage),
		}
		t.calls[c] = m
	}
	return m
}

// Call implements observe.Observer.
func (t *Telemetry) Call(ctx context.Context, c observe.Call) (context.Context, func(observe.Done)) {
	m := t.of(call{c.Pipeline, c.Stage})
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
	return ctx, func(d observe.Done) {
		m.seconds.Observe(time.Since(start).Seconds())
		m.rows.Add(float64(c.Rows))
		if d.Err != nil {
			d.RowErrors = c.Rows
		}
		m.errors.Add(float64(d.RowErrors))
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

// CacheHits implements observe.Observer.
func (t *Telemetry) CacheHits(pipeline, stage string, hits int) {
	t.metrics.cacheHits.WithLabelValues(pipeline, stage).Add(float64(hits))
}

// Retried implements observe.Observer.
func (t *Telemetry) Retried(pipeline, stage string) {
	t.metrics.retries.WithLabelValues(pipeline, stage).Inc()
}

// Restarted implements observe.Observer.
func (t *Telemetry) Restarted(stage, _ string) { t.metrics.restarts.WithLabelValues(stage).Inc() }

// Knowledge implements observe.Observer.
func (t *Telemetry) Knowledge(name string, took time.Duration, err error) {
	if err != nil {
		t.metrics.unmade.WithLabelValues(name).Inc()
		return
	}
	t.metrics.knowledge.WithLabelValues(name).Set(took.Seconds())
}

// Queued implements observe.Observer.
func (t *Telemetry) Queued(pipeline string, items int) {
	t.metrics.queue.WithLabelValues(pipeline).Add(float64(items))
}

// Swapped implements observe.Observer.
func (t *Telemetry) Swapped(pipeline string) { t.metrics.swaps.WithLabelValues(pipeline).Inc() }

// Cluster implements observe.Observer.
func (t *Telemetry) Cluster(pipeline string, now observe.Cluster) {
	m := t.metrics
	for _, state := range []string{"joining", "working", "lacks", "draining"} {
		m.workers.WithLabelValues(pipeline, state).Set(float64(now.Workers[state]))
	}
	for state, n := range map[string]int{"waiting": now.Waiting, "under_way": now.UnderWay, "done": now.Done} {
		m.batches.WithLabelValues(pipeline, state).Set(float64(n))
	}
}
