package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/telemetry"
)

// telemetryFlags say how a verb is watched from outside.
type telemetryFlags struct {
	traces  telemetry.Options
	metrics string
}

func (f *telemetryFlags) register(c *cobra.Command) {
	registerTraces(c, &f.traces)
	c.Flags().StringVar(&f.metrics, "metrics", "", "serve Prometheus metrics at /metrics of `ADDR` meanwhile: a port, or a loopback address with one")
}

// registerTraces registers the flags that say where traces go.
func registerTraces(c *cobra.Command, o *telemetry.Options) {
	c.Flags().StringVar(&o.TraceFile, "trace", "", "add traces to `FILE`, as lines of OTLP/JSON; OTEL_EXPORTER_OTLP_ENDPOINT in the environment names a collector")
	c.Flags().BoolVar(&o.Texts, "trace-texts", false, "have texts of items, answers and messages of errors in traces, too")
}

// exportTime is how long the last spans of a command may take to a collector.
const exportTime = 5 * time.Second

// endTelemetry ends it once the last spans are exported, also where ctx has ended.
func endTelemetry(ctx context.Context, t *telemetry.Telemetry, log *slog.Logger) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), exportTime)
	defer cancel()
	if err := t.Close(within); err != nil {
		log.Warn("the last spans may be lost", "error", err)
	}
}

// watch has the command that c is watched, as flags and environment say. ended is called at
// its end, with its error.
func (f *telemetryFlags) watch(c *cobra.Command, o *engine.Options, print func(string, ...any)) (ended func(error), err error) {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f.traces.Version, f.traces.Log = engine.Version(), log
	t, err := telemetry.New(c.Context(), f.traces)
	if err != nil {
		return nil, err
	}
	var l net.Listener
	switch {
	case f.metrics != "":
		if l, err = telemetry.Listen(f.metrics); err != nil {
			return nil, fmt.Errorf("--metrics: %w", err)
		}
		go t.Serve(l, log)
		print("metrics: http://%s/metrics", l.Addr())
	case !t.Traces():
		return func(error) {}, nil
	}
	o.Observe = t
	ctx, end := t.Command(c.Context(), c.CommandPath())
	c.SetContext(ctx)
	return func(err error) {
		end(err)
		endTelemetry(ctx, t, log)
		if l != nil {
			_ = l.Close()
		}
	}, nil
}
