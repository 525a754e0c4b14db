package caller_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/remote/bus"
	"github.com/racflow/racflow/engine/internal/remote/caller"
	"github.com/racflow/racflow/engine/internal/remote/lease"
	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// Workers are told what the pipeline was opened with.
func TestDefinition(t *testing.T) {
	w := newWorld(t, 10)
	c, _ := w.caller(caller.Options{})
	o := w.options("far", c)
	o.Lists, o.Keep, o.Services = true, journal.KeepAll, &engine.Services{Mode: governor.Offline, Budget: pipeline.Budget{Tokens: 7}}
	must.Get(w.detach(o))(t)
	d := must.Get(caller.DecodeDefinition(w.opened(c.Run()).Definition()))(t)
	if !d.Lists || d.Keep != o.Keep || d.Mode != o.Services.Mode || d.Limits.Budget != lease.Amount(o.Services.Budget) {
		t.Errorf("%+v", d)
	}
}

var builtin = engine.Serve(append(enginetest.Stages(), echo()))

// echo is a voter whose answer is the text.
func echo() sdk.Stage {
	return sdk.SampleStage("echo", "A voter of the test.", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) {
		return repeats{}, nil
	}, sdk.Reads(sdk.ColumnText))
}

type repeats struct{}

func (repeats) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, it := range b.Items {
		samples[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: it.Text, Weight: 1}}}}
	}
	return samples, nil
}

const pipelineFile = `
pipeline "p" {
  input { path = "items.tsv" }
  batch = 8
  sample "echo" { use = "echo" }
  elect "e" {
    use  = "majority"
    flag = "answer contains '7'"
  }
}
`

// world is a server, a pipeline file, and what a run on this machine makes of it.
type world struct {
	t       *testing.T
	servers *natstest.Servers
	dir     string
	want    string // the output of a run on this machine
	items   int
}

func newWorld(t *testing.T, items int) *world {
	t.Helper()
	w := &world{t: t, servers: natstest.Start(t, 1), dir: t.TempDir(), items: items}
	var rows strings.Builder
	rows.WriteString("id\ttext\tnote\n")
	for i := range items {
		text := fmt.Sprintf("item %d", i)
		if i%50 == 49 {
			text = " " // it cannot be used
		}
		fmt.Fprintf(&rows, "i%d\t%s\tnote %d\n", i, text, i)
	}
	for name, content := range map[string]string{"p.hcl": pipelineFile, "items.tsv": rows.String()} {
		must.Do(t, os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600))
	}
	var out *engine.Outcome
	var err error
	if w.want, out, err = w.work(t.Context(), engine.Options{State: w.state("here")}, nil); err != nil || out.Items != items {
		t.Fatalf("%+v, %v", out, err)
	}
	return w
}

func (w *world) state(name string) string { return filepath.Join(w.dir, name) }

// open opens the pipeline.
func (w *world) open(o engine.Options) *engine.Pipeline {
	w.t.Helper()
	o.Builtin, o.Journal, o.Dir = builtin, o.Part == nil, w.dir
	return must.Get(engine.Open(w.t.Context(), filepath.Join(w.dir, "p.hcl"), o))(w.t)
}

// lines writes results as JSONL.
func (w *world) lines(to *bytes.Buffer) (write func([]outcome.Result) error, finish func(error) error) {
	out := must.Get(result.NewWriter(to, result.JSONL, result.Options{}))(w.t)
	return func(all []outcome.Result) error {
		for _, one := range all {
			if err := out.Write(one); err != nil {
				return err
			}
		}
		return nil
	}, func(err error) error { return errors.Join(err, out.Close()) }
}

// work takes the input through the pipeline, and returns the output. each hears of batches as they are
// written.
func (w *world) work(ctx context.Context, o engine.Options, each func(written int)) (string, *engine.Outcome, error) {
	w.t.Helper()
	p := w.open(o)
	defer p.Close()
	var text bytes.Buffer
	write, finish := w.lines(&text)
	written := 0
	out, err := p.Work(ctx, func(all []outcome.Result) error {
		if written += len(all); each != nil {
			each(written)
		}
		return write(all)
	}, finish)
	return text.String(), out, err
}

// connect is another connection to the servers.
func (w *world) connect(name string) *bus.Conn {
	w.t.Helper()
	conn := must.Get(bus.Connect(w.t.Context(), bus.Options{Servers: w.servers.URL(), Name: name}))(w.t)
	w.t.Cleanup(conn.Close)
	return conn
}

// said collects sentences.
type said struct {
	mu  sync.Mutex
	all []string
}

func (s *said) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, fmt.Sprintf(format, args...))
}

func (s *said) has(part string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.all, "\n"), part)
}

// caller makes a caller.
func (w *world) caller(o caller.Options) (*caller.Caller, *said) {
	w.t.Helper()
	s := &said{}
	o.Servers, o.Say = w.servers.URL(), s.say
	c := must.Get(caller.New(w.connect("caller"), o))(w.t)
	return c, s
}

// options are those of a run with a caller.
func (w *world) options(state string, c *caller.Caller) engine.Options {
	return engine.Options{State: w.state(state), Remote: c, Cluster: &journal.ManifestCluster{Run: c.Run(), Servers: w.servers.URL()}}
}

// worker answers batches of all runs, as package worker does, until the test ends or stop is called. before is
// called with each batch, and says whether it is answered.
func (w *world) worker(before func(*bus.Batch) bool) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	conn := w.connect("worker")
	ids := conn.Watch(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for id := range ids {
			done.Go(func() {
				err := w.takePart(ctx, conn, id, before)
				if err == nil || ctx.Err() != nil {
					return
				}
				if different := new(engine.DifferentError); errors.As(err, &different) { // it takes no part, as a worker
					w.t.Logf("worker: %v", err)
					return
				}
				if _, gone := conn.Open(ctx, id); !errors.Is(gone, bus.ErrNoRun) && ctx.Err() == nil {
					w.t.Errorf("worker: %v", err)
				}
			})
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		done.Wait()
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) takePart(ctx context.Context, conn *bus.Conn, id string, before func(*bus.Batch) bool) error {
	run, err := conn.Open(ctx, id)
	if err != nil {
		return err
	}
	d, err := caller.DecodeDefinition(run.Definition())
	if err != nil {
		return err
	}
	p := w.open(engine.Options{State: filepath.Join(w.t.TempDir(), "worker"), Input: d.Bundle.Input, Part: &engine.Part{Manifest: d.Manifest, Spend: d.Spend}})
	defer p.Close()
	if err := p.Join(ctx); err != nil {
		return err
	}
	for {
		b, err := run.Take(ctx)
		if err != nil {
			return err
		}
		if before != nil && !before(b) {
			if err := b.Return(); err != nil {
				return err
			}
			continue
		}
		order, err := packet.DecodeOrder(b.Data)
		if err != nil {
			return err
		}
		a, err := p.Take(ctx, order)
		if err != nil {
			return err
		}
		data, err := packet.EncodeAnswers(order.Rows, a)
		if err != nil {
			return err
		}
		if _, err := run.Answer(ctx, b.Position, data); err != nil {
			return err
		}
		if err := b.Done(ctx); err != nil {
			return err
		}
	}
}

// gone reports whether the servers have nothing of any run.
func (w *world) gone() bool {
	w.t.Helper()
	ids := must.Get(w.connect("looker").Runs(w.t.Context()))(w.t)
	return len(ids) == 0
}
