package cli

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/worker"
)

// working are the flags of worker.
type working struct {
	cluster   clusterFlags
	telemetry telemetryFlags
	state     string
	plugins   []string
	models    []string
	jobs      int
	grace     time.Duration
}

func newWorker() *cobra.Command {
	var w working
	c := &cobra.Command{
		Use:   "worker --on SERVERS",
		Short: "Take part in runs that others have begun at NATS servers",
		Long: `Take part in runs that racflow run --on has begun at the same NATS servers, until it is
told to end:

    racflow worker --on nats://a,b,c:4222

It needs no pipeline file: the file, all that it reads and local knowledge come from the
servers, and are kept below --state for the next run that has them. Plugins are those
of the file's lock, which racflow plugin init has installed here, models those of
racflow model pull, and what the file reads with secret() and env() comes from the
environment of this process. What is missing here, and what would make other answers
than the caller's, is said with the name of this machine by the caller and by
racflow runs show ID. Until it is mended this worker takes no part in that run; it looks
every half minute, and at once on SIGHUP.

It works on the oldest four runs, and on others where these have nothing to do. --jobs
bounds the batches that are under way at a time; without it, each pipeline has as many
as on one machine, which suits local stages and services. Limits, budget and answers of
services are the run's, whatever the number of workers.

A batch whose worker dies goes to another. An interrupt or SIGTERM has it take no more
batches; those under way have --grace to end, and the rest goes to others. A second one
ends it at once.

Exit code 0: it was ended; 1: it could not start, or the servers refuse it.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return w.run(c) },
	}
	w.cluster.register(c, "take part in runs there")
	w.telemetry.register(c)
	c.Flags().IntVar(&w.jobs, "jobs", 0, "work on `N` batches at a time, of all runs together")
	c.Flags().StringVar(&w.state, "state", worker.DefaultState, "`DIR` that keeps what runs bring; several workers may share one")
	c.Flags().StringArrayVar(&w.models, "models", nil, "look in `DIR` for models that no hub has, by what is in them (may be repeated)")
	c.Flags().DurationVar(&w.grace, "grace", time.Minute, "give batches to others that have not ended so long after SIGTERM")
	c.Flags().StringArrayVar(&w.plugins, "plugins", nil, "use the plugins in `DIR`, which are being developed, whatever a run's file has locked (may be repeated)")
	return c
}

func (w *working) run(c *cobra.Command) (err error) {
	switch {
	case w.jobs < 0 || w.jobs == 0 && c.Flags().Changed("jobs"):
		return fmt.Errorf("--jobs %d: it is at least 1", w.jobs)
	case w.grace <= 0:
		return fmt.Errorf("--grace %s: it is more than 0", w.grace)
	case w.state == "":
		return errors.New("--state is empty: name a folder")
	}
	d := newDisplay()
	events := d.events()
	log, err := newLog()
	if err != nil {
		return err
	}
	o := worker.Options{
		Engine: engine.Options{Builtin: builtin, Plugins: w.plugins, Log: log, Events: engine.Events{Plugins: events.Plugins, Waiting: events.Waiting}},
		Models: w.models, Jobs: w.jobs, State: w.state, Grace: w.grace, Say: d.print,
	}
	again, stop := hangups()
	defer stop()
	o.Again = again
	conn, err := w.cluster.connect(c.Context(), d.print)
	if err != nil {
		return err
	}
	defer conn.Close()
	w.telemetry.traces.Worker = conn.Name()
	ended, err := w.telemetry.watch(c, &o.Engine, d.print)
	if err != nil {
		return err
	}
	defer func() { ended(err) }()
	d.print("%s takes part in runs at %s", conn.Name(), withoutUsers(w.cluster.servers))
	return worker.Work(c.Context(), conn, o)
}

// hangups has a value for each SIGHUP, which says that something may have changed.
func hangups() (again <-chan struct{}, stop func()) {
	signals, out := make(chan os.Signal, 1), make(chan struct{}, 1)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for range signals {
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out, func() {
		signal.Stop(signals)
		close(signals)
	}
}
