package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// other is a Remote that has another process answer: another workspace, which takes part in the run.
type other struct {
	t    *testing.T
	path string
	o    engine.Options

	part   *engine.Pipeline
	begun  engine.Beginning
	orders atomic.Int32
	ended  []error
}

func (r *other) Begin(ctx context.Context, b engine.Beginning) (err error) {
	r.begun = b
	r.o.Part = &engine.Part{Manifest: b.Manifest, Spend: b.Manifest.Spend}
	if r.part, err = engine.Open(ctx, r.path, r.o); err != nil {
		return err
	}
	r.t.Cleanup(r.part.Close)
	return r.part.Join(ctx)
}

func (r *other) Window(int) int { return 3 }

func (r *other) Answer(ctx context.Context, o run.Order) (run.Answers, error) {
	r.orders.Add(1)
	return r.part.Take(ctx, o)
}

func (r *other) End(_ context.Context, err error) error {
	r.ended = append(r.ended, err)
	return nil
}

// asker is paid, of the text alone.
func asker() sdk.Stage {
	return sdk.SampleStage("asker", "A voter of the test.", func(_ context.Context, s sdk.Setup, c service) (sdk.Sampler, error) {
		return model{c.URL, s.Host}, nil
	}, sdk.Network(), sdk.Reads(sdk.ColumnText))
}

// echo is a voter that calls nobody: the text is the answer.
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

// The results of a run are the same where another process answers, whatever its paid voters may
// spend.
func TestRemote(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "fruit") }))
	defer server.Close()
	text := fmt.Sprintf(`
pipeline "p" {
  sample "v" {
    use = "moody"
    price {
      input  = 1
      output = 1
    }
    config { starts = path("starts") }
  }
  sample "echo" { use = "echo" }
  sample "llm" {
    use = "asker"
    price {
      input  = 1
      output = 10
    }
    config { url = %q }
  }
  elect "e" { use = "majority" }
}
`, server.URL)
	for name, calls := range map[string]int{"every voter is asked": -1, "seven calls, two for each item": 7} {
		t.Run(name, func(t *testing.T) {
			path, o := write(t, text)
			dir := filepath.Dir(path)
			o.Journal, o.Input = true, beside(t, path, "items.tsv", "text\n"+strings.Repeat("x\ny\nz\n", 60))
			if calls >= 0 {
				o.Spend = spend.Limit{Calls: &calls}
			}
			work := func(state string, remote engine.Remote) (all []result.Result, out *engine.Outcome) {
				t.Helper()
				beside(t, path, "starts", "")
				o := o
				o.State, o.Remote = filepath.Join(dir, state), remote
				p := mustOpen(t, path, o)
				defer p.Close()
				var mu sync.Mutex
				out, err := p.Work(t.Context(), func(batch []outcome.Result) error {
					mu.Lock()
					defer mu.Unlock()
					for _, one := range batch {
						all = append(all, result.Of(one, p.Definition().Cost))
					}
					return nil
				}, nil)
				must.Do(t, err)
				return all, out
			}
			here, told := work("here", nil)
			far := &other{t: t, path: path, o: engine.Options{Builtin: builtin, State: filepath.Join(dir, "far"), Input: o.Input}}
			there, toldThere := work("there", far)
			if len(here) != 180 || !slices.EqualFunc(here, there, func(a, b result.Result) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
				t.Errorf("%d results here, %d there, or others:\n%v\n%v", len(here), len(there), here[0], there[0])
			}
			if far.orders.Load() == 0 || len(far.ended) != 1 || far.ended[0] != nil {
				t.Errorf("%d orders, ended %v", far.orders.Load(), far.ended)
			}
			if calls >= 0 && (told.Spent.Calls != 6 || told.Spent.Asked != toldThere.Spent.Asked || told.Spent.Calls != toldThere.Spent.Calls || told.Spent.Cost != toldThere.Spent.Cost) {
				t.Errorf("spent %+v here, %+v there", told.Spent, toldThere.Spent)
			}
			if told.Usage != toldThere.Usage || told.Cost != toldThere.Cost {
				t.Errorf("used %+v for %v here, %+v for %v there", told.Usage, told.Cost, toldThere.Usage, toldThere.Cost)
			}
		})
	}
}

// Who would give other answers takes no part.
func TestJoinRefuses(t *testing.T) {
	path, o := write(t, `
pipeline "p" {
  sample "llm" {
    use = "asker"
    config { url = "http://localhost" }
  }
  elect "e" { use = "majority" }
}
`)
	o.Part = &engine.Part{}
	o.Part.Manifest.Version = "0.0.1"
	p := mustOpen(t, path, o)
	defer p.Close()
	var different *engine.DifferentError
	if err := p.Join(t.Context()); !errors.As(err, &different) || !strings.Contains(err.Error(), "racflow is version") {
		t.Errorf("%v does not say what is different", err)
	}
}

// away is a Remote whose process has another state folder, with what is shipped alone.
type away struct {
	other
	names []string
}

func (r *away) Begin(ctx context.Context, b engine.Beginning) error {
	files, err := b.Pipeline.Shipment()
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := os.ReadFile(f.Path)
		if err != nil {
			return err
		}
		to := filepath.Join(r.o.State, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
		r.names = append(r.names, f.Name)
	}
	return r.other.Begin(ctx, b)
}

// below are the names of files below a folder.
func below(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// TestShipmentOfTheirs: of a collection that another program makes its sample is shipped, and what stages learnt from that:
// another process neither reads it again nor learns anew, though rows were added meanwhile.
func TestShipmentOfTheirs(t *testing.T) {
	c := newTheirs(t)
	remote := &away{other: other{t: t, path: c.path, o: c.o}}
	remote.o.State = filepath.Join(t.TempDir(), "there")
	first := c.open(t) // so that there is a sample
	if _, err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.change("1", fruit()[:19]...)
	p := c.open(t, func(o *engine.Options) { o.Remote = remote })
	n := 0
	if _, err := p.Work(t.Context(), func(batch []outcome.Result) error { n += len(batch); return nil }, nil); err != nil || n != 2 {
		t.Fatalf("%d results, %v", n, err)
	}
	count := func(prefix string) (n int) {
		for _, name := range remote.names {
			if strings.HasPrefix(name, prefix) {
				n++
			}
		}
		return n
	}
	if count("attached/k-") < 2 || count("fitted/attached-k-") != 1 || count("knowledge/") > 0 {
		t.Errorf("shipped: %v", remote.names)
	}
	for _, folder := range []string{"fitted", "attached"} {
		here, there := below(t, filepath.Join(c.o.State, folder)), below(t, filepath.Join(remote.o.State, folder))
		if !slices.Equal(here, there) {
			t.Errorf("%s: here %v, there %v", folder, here, there)
		}
	}
	p.Close()
	if left, err := os.ReadDir(filepath.Join(c.o.State, "shipments")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
