package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/run/journal"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// leaver is an other that may be left: it keeps what it is given.
type leaver struct {
	other
	items  int
	orders []run.Order
	known  map[int]outcome.Result // by line
	broken error
}

func (l *leaver) Send(_ context.Context, o run.Order) error {
	l.orders = append(l.orders, o)
	return l.broken
}

func (l *leaver) Know(_ context.Context, rows []source.Row, results []outcome.Result) error {
	for i, row := range rows {
		l.known[row.Line] = results[i]
	}
	return nil
}

func (l *leaver) Leave(_ context.Context, items int) error {
	l.items = items
	return nil
}

// elsewhere has the other process answer, in batches of one.
func (l *leaver) elsewhere(t *testing.T, m journal.Manifest) engine.Elsewhere {
	t.Helper()
	answered := map[int]run.Answers{}
	last := 0
	for _, o := range l.orders {
		a, err := l.part.Take(t.Context(), o)
		must.Do(t, err)
		for i, row := range o.Rows {
			one := run.Answers{Results: a.Results[i : i+1]}
			if i == 0 {
				one.Times, one.Distributions = a.Times, a.Distributions
			}
			answered[row.Line] = one
			last = max(last, row.Line)
		}
	}
	for line, one := range l.known {
		answered[line] = run.Answers{Results: []outcome.Result{one}}
		last = max(last, line)
	}
	return engine.Elsewhere{Manifest: m, Labels: l.begun.Labels, Items: l.items, Answers: func(yield func(run.Answers, error) bool) {
		for line := range last + 1 {
			if a, ok := answered[line]; ok && !yield(a, nil) {
				return
			}
		}
	}, End: l.End}
}

const echoes = `
pipeline "p" {
  sample "echo" { use = "echo" }
  elect "e" { use = "majority" }
}
`

// A run that was left comes back whole, where neither its file nor its input is.
func TestDetach(t *testing.T) {
	path, o := write(t, echoes)
	dir := filepath.Dir(path)
	items := "id\ttext\tnote\n"
	for i := range 150 {
		items += fmt.Sprintf("i%d\tred %d car\tn%d\n", i, i, i)
	}
	items += "bad\t \tx\nlast\tgreen pear\ty\n"
	o.Input, o.Journal = beside(t, path, "items.tsv", items), true
	lines := func(text *bytes.Buffer) (write func([]outcome.Result) error, finish func(error) error) {
		w, err := result.NewWriter(text, result.JSONL, result.Options{})
		must.Do(t, err)
		return func(all []outcome.Result) error {
				for _, one := range all {
					if err := w.Write(one); err != nil {
						return err
					}
				}
				return nil
			}, func(err error) error {
				return errors.Join(err, w.Close())
			}
	}
	here := func() (string, *engine.Outcome) {
		o := o
		o.State = filepath.Join(dir, "here")
		p := mustOpen(t, path, o)
		defer p.Close()
		var text bytes.Buffer
		write, finish := lines(&text)
		out, err := p.Work(t.Context(), write, finish)
		must.Do(t, err)
		return text.String(), out
	}
	want, wanted := here()

	l := &leaver{other: other{t: t, path: path, o: engine.Options{Builtin: builtin, State: filepath.Join(dir, "far"), Input: o.Input}}, known: map[int]outcome.Result{}}
	o.Remote, o.Cluster = l, &journal.ManifestCluster{Run: "k3v9q2", Servers: "nats://a"}
	detach := func(o engine.Options) (*engine.Detached, error) {
		p := mustOpen(t, path, o)
		defer p.Close()
		return p.Detach(t.Context())
	}
	l.broken = errors.New("no servers")
	if _, err := detach(o); !errors.Is(err, l.broken) || len(l.ended) != 1 || !errors.Is(l.ended[0], l.broken) {
		t.Fatalf("%v, ended %v", err, l.ended)
	}
	l.broken, l.orders, l.ended = nil, nil, nil
	o.Resume = engine.Newest
	left, err := detach(o)
	if err != nil || left.Items != 152 || l.items != 152 || left.Run != "run-000001" || len(l.ended) != 0 {
		t.Fatalf("%+v, %v, %d items, ended %v", left, err, l.items, l.ended)
	}
	if end := journal.RunsOf(o.State).End(left.Run); end == nil || !end.Unfinished() || !strings.Contains(end.Reason, "left") {
		t.Errorf("%+v", end)
	}

	// Twice from an empty folder, which takes what the first time has left there.
	state := t.TempDir()
	for _, whole := range []bool{false, true} {
		w, err := engine.NewWorkspace(t.Context(), engine.Options{Builtin: builtin, State: state})
		must.Do(t, err)
		var text bytes.Buffer
		write, finish := lines(&text)
		ctx, cancel := context.WithCancel(t.Context())
		from := l.elsewhere(t, l.begun.Manifest)
		out, err := w.Attach(ctx, from, func(all []outcome.Result) error {
			if !whole && all[0].Line > 60 {
				cancel()
			}
			return write(all)
		}, finish)
		cancel()
		w.Close()
		if !whole {
			if !errors.Is(err, context.Canceled) || out.Items == 0 || out.Items > 100 || len(l.ended) != 1 || l.ended[0] == nil {
				t.Fatalf("%+v, %v, ended %v", out, err, l.ended)
			}
			continue
		}
		if err != nil || text.String() != want {
			t.Errorf("%v, got %d bytes, want %d", err, text.Len(), len(want))
		}
		if out.Run != "run-000001" || out.Earlier == 0 || out.Earlier > 100 || out.Failed != 1 || len(l.ended) != 2 || l.ended[1] != nil {
			t.Errorf("%+v, ended %v", out, l.ended)
		}
		if fmt.Sprint(out.Evaluation.Voters) != fmt.Sprint(wanted.Evaluation.Voters) || out.Items != wanted.Items || len(out.Stages) != len(wanted.Stages) {
			t.Errorf("reports %+v, want %+v", out, wanted)
		}
	}
	kept, err := journal.RunsOf(state).Open("run-000001")
	must.Do(t, err)
	defer kept.Close(nil) //nolint:errcheck // it was only read
	if kept.Known() != 151 || kept.Manifest.Cluster.Run != "k3v9q2" {
		t.Errorf("%d known, %+v", kept.Known(), kept.Manifest)
	}

	// What did not come back is missed.
	w, err := engine.NewWorkspace(t.Context(), engine.Options{Builtin: builtin, State: t.TempDir()})
	must.Do(t, err)
	defer w.Close()
	from := l.elsewhere(t, l.begun.Manifest)
	from.Items++
	if _, err := w.Attach(t.Context(), from, func([]outcome.Result) error { return nil }, nil); err == nil || !strings.Contains(err.Error(), "152 of the 153 items have come back") {
		t.Error(err)
	}
}

// What has to be decided from answers cannot be left.
func TestDetachRefuses(t *testing.T) {
	path, o := write(t, echoes)
	l := &leaver{other: other{t: t, path: path, o: engine.Options{Builtin: builtin}}, known: map[int]outcome.Result{}}
	for name, change := range map[string]func(*engine.Options){
		"Remote": func(o *engine.Options) { o.Remote = &l.other },
		"Again":  func(o *engine.Options) { o.Again = engine.Newest },
	} {
		o := o
		o.Remote, o.Journal = l, true
		change(&o)
		p := mustOpen(t, path, o)
		_, err := p.Detach(t.Context())
		p.Close()
		var option *engine.OptionError
		if !errors.As(err, &option) || option.Option != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}
