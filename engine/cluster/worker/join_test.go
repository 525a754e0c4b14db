package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cluster/bundle"
	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/cluster/definition"
	"github.com/racflow/racflow/engine/cluster/natstest"
	"github.com/racflow/racflow/engine/cluster/packet"
	"github.com/racflow/racflow/engine/enginetest"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var builtin = engine.Serve([]sdk.Stage{mortal(), enginetest.Majority()})

// mortal is a voter whose answer is the text. The first time that it is asked about a text "die" its process ends, and
// starts no more as long as its folder has a file broken.
func mortal() sdk.Stage {
	return sdk.SampleStage("mortal", "A voter of the test.", func(_ context.Context, _ sdk.Setup, c mortalConfig) (sdk.Sampler, error) {
		if there(filepath.Join(c.Folder, "broken")) {
			return nil, errors.New("it is broken")
		}
		return c, nil
	}, sdk.Reads(sdk.ColumnText))
}

type mortalConfig struct {
	Folder string `config:"folder" affects_output:"false" doc:"Where the files broken and died are."`
	Key    string `config:"key" doc:"A secret."`
}

func (m mortalConfig) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, it := range b.Items {
		if m.Folder != "" && it.Text == "die" && !there(filepath.Join(m.Folder, "died")) {
			for _, name := range []string{"broken", "died"} {
				if err := os.WriteFile(filepath.Join(m.Folder, name), nil, 0o600); err != nil {
					return nil, err
				}
			}
			os.Exit(9)
		}
		samples[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: it.Text, Weight: 1}}}}
	}
	return samples, nil
}

// simple is a pipeline of texts that are answers.
const simple = `
variable "folder" { default = "" }
variable "key" { default = secret("WORKER_TEST_KEY") }
pipeline "p" {
  input { path = "items.tsv" }
  batch = 4
  sample "v" {
    use = "mortal"
    config {
      folder = var.folder
      key    = var.key
    }
  }
  elect "e" { use = "majority" }
}
`

// remote is the caller's side of a run, as small as it can be.
type remote struct {
	t    *testing.T
	conn *bus.Conn
	id   string

	run   *bus.Run
	mu    sync.Mutex
	seq   int
	waits map[bus.Position]chan run.Answers
}

func (r *remote) Begin(ctx context.Context, b engine.Beginning) error {
	of, err := bundle.Of(b.Pipeline)
	if err != nil {
		return err
	}
	if err := of.Put(ctx, r.conn); err != nil {
		return err
	}
	d := definition.Definition{Run: r.id, Caller: "caller", Version: engine.Version(), Manifest: b.Manifest, Labels: b.Labels, Bundle: of}
	r.run, r.waits = begin(r.t, r.conn, d, 2*time.Second), map[bus.Position]chan run.Answers{}
	go func() {
		for result, err := range r.run.Results(ctx, 0) {
			if err != nil {
				return
			}
			_, a, err := packet.DecodeAnswers(result.Data)
			if err != nil {
				r.t.Error(err)
			}
			r.mu.Lock()
			r.waits[result.Position] <- a
			r.mu.Unlock()
		}
	}()
	return nil
}

func (r *remote) Window(int) int { return 16 }

func (r *remote) Answer(ctx context.Context, o run.Order) (run.Answers, error) {
	data, err := packet.EncodeOrder(o)
	if err != nil {
		return run.Answers{}, err
	}
	answer := make(chan run.Answers, 1)
	r.mu.Lock()
	r.seq++
	at := bus.Position{Part: 1, Seq: r.seq}
	r.waits[at] = answer
	r.mu.Unlock()
	if err := r.run.Publish(ctx, at, data); err != nil {
		return run.Answers{}, err
	}
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		return run.Answers{}, ctx.Err()
	}
}

func (r *remote) End(ctx context.Context, _ error) error {
	_, err := r.run.Put(context.WithoutCancel(ctx), definition.EndKey, []byte("{}"))
	return err
}

// texts writes the pipeline and its items.
func texts(t *testing.T, n int) (path string) {
	t.Helper()
	dir := t.TempDir()
	var items strings.Builder
	items.WriteString("id\ttext\n")
	for i := range n {
		fmt.Fprintf(&items, "q%d\ttext %d\n", i, i%7)
	}
	for name, text := range map[string]string{"p.hcl": simple, "items.tsv": items.String()} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return filepath.Join(dir, "p.hcl")
}

// answered takes the items through the pipeline, here or elsewhere.
func answered(t *testing.T, path string, o engine.Options) (all []string) {
	t.Helper()
	o.Builtin, o.State, o.Journal = builtin, filepath.Join(t.TempDir(), "state"), true
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	p := must.Get(engine.Open(ctx, path, o))(t)
	defer p.Close()
	if _, err := p.Work(ctx, func(batch []outcome.Result) error {
		for _, one := range batch {
			all = append(all, fmt.Sprintf("%+v", result.Of(one, p.Definition().Cost)))
		}
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	return all
}

// worksAt starts a worker. end has it drain, and waits for that.
func worksAt(t *testing.T, s *natstest.Servers, name, state string, o Options) (end func()) {
	t.Helper()
	conn := connect(t, s, name)
	o.Engine.Builtin, o.State = builtin, state
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Work(ctx, conn, o) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return end
}

// Two workers with one state folder give the answers of a run on one machine. What one of them has not is told, and
// it takes part once that is there.
func TestPipeline(t *testing.T) {
	t.Setenv("WORKER_TEST_KEY", "hush")
	path := texts(t, 300)
	here := answered(t, path, engine.Options{})
	s := natstest.Start(t, 1)
	state := filepath.Join(t.TempDir(), "state")
	for _, name := range []string{"first", "second"} {
		worksAt(t, s, name, state, Options{})
	}
	r := &remote{t: t, conn: connect(t, s, "caller"), id: "a1"}
	there := answered(t, path, engine.Options{Remote: r})
	if len(here) != 300 || strings.Join(here, "\n") != strings.Join(there, "\n") {
		t.Errorf("%d results here, %d there, or others:\n%s\n%s", len(here), len(there), here[0], there[0])
	}
	for _, name := range []string{"first", "second"} {
		forgotten(t, r.run, name)
	}
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) { // what it has is removed after its last word
		left, err := filepath.Glob(filepath.Join(state, "*", "a1"))
		if err != nil || len(left) == 0 {
			break
		}
		if time.Since(start) > patience {
			t.Fatalf("of the run that is over there stays %v", left)
		}
	}
}

func forgotten(t *testing.T, r *bus.Run, name string) {
	t.Helper()
	state(t, r, name, func(w *definition.Worker) bool { return w == nil })
}

// A worker without a secret says so with its name, and takes part once it has it.
func TestSecretIsNotHere(t *testing.T) {
	t.Setenv("WORKER_TEST_KEY", "hush")
	path := texts(t, 20)
	s := natstest.Start(t, 1)
	r := &remote{t: t, conn: connect(t, s, "caller"), id: "a1"}
	began := make(chan struct{})
	done := make(chan []string)
	go func() {
		done <- answered(t, path, engine.Options{Remote: waiting{r, began}})
	}()
	<-began
	must.Do(t, os.Unsetenv("WORKER_TEST_KEY"))
	again := make(chan struct{})
	worksAt(t, s, "poor", filepath.Join(t.TempDir(), "state"), Options{Again: again})
	state(t, r.run, "poor", func(w *definition.Worker) bool {
		return w != nil && w.State == definition.Lacks && len(w.Lacks) == 1 && strings.Contains(w.Lacks[0], "WORKER_TEST_KEY") && w.Batches == 0
	})
	t.Setenv("WORKER_TEST_KEY", "hush")
	again <- struct{}{}
	if all := <-done; len(all) != 20 {
		t.Errorf("%d results", len(all))
	}
}

// waiting says when the run has begun.
type waiting struct {
	*remote
	began chan struct{}
}

func (w waiting) Begin(ctx context.Context, b engine.Beginning) error {
	defer close(w.began)
	return w.remote.Begin(ctx, b)
}

// Where the process of a stage does not start any more, the worker gives its batch back and opens the pipeline anew, as
// often as it takes: no item fails.
func TestStageIsBroken(t *testing.T) {
	t.Setenv("WORKER_TEST_KEY", "hush")
	path, deadly := texts(t, 20), t.TempDir()
	items := must.Get(os.ReadFile(filepath.Join(filepath.Dir(path), "items.tsv")))(t)
	must.Do(t, os.WriteFile(filepath.Join(filepath.Dir(path), "items.tsv"), append(items, "q20\tdie\n"...), 0o600))
	s := natstest.Start(t, 1)
	r := &remote{t: t, conn: connect(t, s, "caller"), id: "a1"}
	began, done := make(chan struct{}), make(chan []string)
	go func() {
		done <- answered(t, path, engine.Options{Remote: waiting{r, began}, Vars: map[string]string{"folder": deadly}})
	}()
	<-began
	worksAt(t, s, "worker", filepath.Join(t.TempDir(), "state"), Options{})
	state(t, r.run, "worker", func(w *definition.Worker) bool {
		return w != nil && w.State == definition.Lacks && len(w.Lacks) == 1 && strings.Contains(w.Lacks[0], "it is broken")
	})
	must.Do(t, os.Remove(filepath.Join(deadly, "broken")))
	all := <-done
	if len(all) != 21 || !strings.Contains(all[20], "die") {
		t.Errorf("%d results, the last %s", len(all), all[len(all)-1])
	}
	for _, one := range all {
		if !strings.Contains(one, "Error:<nil>") {
			t.Errorf("an item failed: %s", one)
		}
	}
}
