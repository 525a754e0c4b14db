package fitted_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/run/fitted"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var fittedBuiltin = workspace.Serve(enginetest.Stages())

// fittedBench is a file with a voter that learns, and a state folder. Its stages are processes.
type fittedBench struct {
	t       *testing.T
	dir     string
	mu      sync.Mutex
	fitting []string // stages, once for each page of rows that they received
	steps   []workspace.Progress
}

const fittedFile = `
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "memory" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.k }
  sample "one" { use = "words" }
  elect "e" { use = "soft" }
}
`

const (
	apples = "text\tlabel\napple\tfruit\npear\tfruit\ncar\tvehicle\n"
	cars   = "text\tlabel\napple\tcompany\ncar\tvehicle\n"
)

func fittedNewBench(t *testing.T) *fittedBench {
	b := &fittedBench{t: t, dir: t.TempDir()}
	b.write("p.hcl", fittedFile)
	b.write("rows.tsv", apples)
	b.write("items.tsv", "text\napple\n")
	return b
}

func (b *fittedBench) write(name, content string) {
	b.t.Helper()
	must.Do(b.t, os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o600))
}

func (b *fittedBench) open() *workspace.Pipeline {
	b.t.Helper()
	p, err := workspace.Open(b.t.Context(), filepath.Join(b.dir, "p.hcl"), workspace.Options{
		Builtin: fittedBuiltin, State: filepath.Join(b.dir, "state"),
		Events: workspace.Events{Progress: func(s workspace.Progress) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if !strings.HasPrefix(s.Name, "sample.") {
				return
			}
			b.steps = append(b.steps, s)
			if s.Doing == "fitting" {
				b.fitting = append(b.fitting, s.Name)
			}
		}},
	})
	must.Do(b.t, err)
	return p
}

// answer asks about an apple, and returns the stages that were fitted for the answer.
func (b *fittedBench) answer() (answer string, fitted []string, err error) {
	b.t.Helper()
	b.fitting, b.steps = nil, nil
	p := b.open()
	defer p.Close()
	r, err := p.Answer(b.t.Context(), workspace.Item{Text: "apple"})
	slices.Sort(b.fitting)
	return string(r.Answer), b.fitting, err
}

func (b *fittedBench) want(answer string, fitted ...string) {
	b.t.Helper()
	got, by, err := b.answer()
	if err != nil || got != answer {
		b.t.Errorf("answer %q, error %v; want %q", got, err, answer)
	}
	if d := cmp.Diff(fitted, by); d != "" {
		b.t.Errorf("fitted (-want +got):\n%s", d)
	}
}

// kept returns the folders of what stages have learnt.
func (b *fittedBench) kept() []string {
	b.t.Helper()
	all, err := filepath.Glob(filepath.Join(b.dir, "state", "fitted", "*", "*"))
	must.Do(b.t, err)
	return all
}

func TestFittedOnce(t *testing.T) {
	b := fittedNewBench(t)
	b.want("fruit", "sample.one")
	b.want("fruit")
	kept := b.kept()
	if len(kept) != 1 {
		t.Fatalf("kept %q", kept)
	}
	if raw, err := os.ReadFile(filepath.Join(kept[0], "labels.json")); err != nil || !strings.Contains(string(raw), `"apple":{"fruit":1}`) {
		t.Errorf("it keeps %s, %v", raw, err)
	}
	b.write("rows.tsv", cars)
	b.want("company", "sample.one")
	b.write("rows.tsv", apples)
	b.want("fruit") // what was learnt from these rows is still there
	if n := len(b.kept()); n != 2 {
		t.Errorf("%d folders are kept", n)
	}
}

// TestSample: from many rows a stage gets a sample up to the bound, with rows of every label, in
// any order of the rows. If the rows do not exceed the bound, it gets all rows.
func TestSample(t *testing.T) {
	rows := []string{"s1\tsmallone\tsmall", "s2\tsmalltwo\tsmall", "o\tsingle\tone"}
	for i := range 12 {
		rows = append(rows, fmt.Sprintf("b%d\tbig%c\tbig", i, 'a'+i))
	}
	learn := func(most int) (name string, learnt map[string]map[string]int) {
		defer fitted.Lower(most)()
		b := fittedNewBench(t)
		b.write("rows.tsv", "id\ttext\tlabel\n"+strings.Join(rows, "\n")+"\n")
		if _, _, err := b.answer(); err != nil || len(b.kept()) != 1 {
			t.Fatalf("kept %q, %v", b.kept(), err)
		}
		raw, err := os.ReadFile(filepath.Join(b.kept()[0], "labels.json"))
		if err = errors.Join(err, json.Unmarshal(raw, &learnt)); err != nil {
			t.Fatal(err)
		}
		n := int64(min(most, len(rows)))
		for _, want := range []workspace.Progress{
			{Doing: "fitting", Name: "sample.one", Unit: "row", Done: n, Total: n},
			{Doing: "learning", Name: "sample.one", Unit: "row", Done: n},
		} {
			if !slices.Contains(b.steps, want) {
				t.Errorf("of %+v no %+v", b.steps, want)
			}
		}
		return filepath.Base(b.kept()[0]), learnt
	}
	whole, all := learn(1000)
	same, _ := learn(len(rows))
	if whole != same || len(all) != len(rows) {
		t.Errorf("%d rows are %s with a bound that they do not exceed, and %s without", len(all), same, whole)
	}
	name, some := learn(6)
	must.Equal(t, "number of rows, those of single and small labels, and a name of its own", []any{6, true, true, true, true},
		[]any{len(some), some["single"] != nil, some["smallone"] != nil, some["smalltwo"] != nil, name != whole})
	slices.Reverse(rows)
	if _, again := learn(6); !cmp.Equal(some, again) {
		t.Errorf("in another order other rows are learnt from: %s", cmp.Diff(some, again))
	}
}

func TestConfigsDoNotShare(t *testing.T) {
	b := fittedNewBench(t)
	b.write("p.hcl", strings.Replace(fittedFile, `sample "one" { use = "words" }`, `sample "one" { use = "words" }
  sample "same" { use = "words" }
  sample "other" {
    use = "words"
    config { weight = 2 }
  }`, 1))
	b.want("fruit", "sample.one", "sample.other")
	b.want("fruit")
	if n := len(b.kept()); n != 2 {
		t.Errorf("%d folders are kept", n)
	}
}

// A fit that fails, or whose process always ends, leaves no valid folder.
func TestFitFails(t *testing.T) {
	for label, want := range map[string]string{"unlearnable": `sample.one: learn from knowledge "k": `, "deadly": "restarted"} {
		t.Run(label, func(t *testing.T) {
			b := fittedNewBench(t)
			b.write("rows.tsv", apples+"x\t"+label+"\n")
			if _, _, err := b.answer(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v does not say %q", err, want)
			}
			if kept := b.kept(); len(kept) > 0 {
				t.Errorf("%q is left", kept)
			}
			b.write("rows.tsv", apples)
			b.want("fruit", "sample.one")
		})
	}
}

// The leftovers of a killed process do not count, and are removed after a day.
func TestKilledFit(t *testing.T) {
	b := fittedNewBench(t)
	b.want("fruit", "sample.one")
	whole := b.kept()[0]
	left := filepath.Join(filepath.Dir(whole), "new-1")
	if err := os.Rename(whole, left); err != nil { // its state before it got its name
		t.Fatal(err)
	}
	b.want("fruit", "sample.one")
	if d := cmp.Diff([]string{whole, left}, b.kept()); d != "" {
		t.Errorf("left too early (-want +got):\n%s", d)
	}
	old := time.Now().Add(-25 * time.Hour)
	must.Do(t, os.Chtimes(left, old, old))
	must.Do(t, os.RemoveAll(whole))
	b.want("fruit", "sample.one")
	if d := cmp.Diff([]string{whole}, b.kept()); d != "" {
		t.Errorf("left (-want +got):\n%s", d)
	}
}

// The identity of a stage includes what it has learnt.
func TestIdentity(t *testing.T) {
	b := fittedNewBench(t)
	for range 2 {
		p := b.open()
		r, err := p.Start(t.Context())
		must.Do(t, err)
		for _, s := range r.Graph().Identities() {
			want := ""
			if s.Stage == "sample.one" {
				want = filepath.Base(b.kept()[0])
			}
			if s.Learnt != want {
				t.Errorf("%s has learnt %q, want %q", s.Stage, s.Learnt, want)
			}
		}
		p.Close()
	}
	before, now := journal.ManifestStage{Stage: "sample.one", Learnt: "a"}, journal.ManifestStage{Stage: "sample.one", Learnt: "b"}
	differ := journal.Manifest{Stages: []journal.ManifestStage{before}}.Differences(journal.Manifest{Stages: []journal.ManifestStage{now}})
	if d := cmp.Diff([]string{"what sample.one has learnt"}, differ); d != "" {
		t.Error(d)
	}
}
