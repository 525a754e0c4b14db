package workspace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/show/explain"
	"github.com/racflow/racflow/engine/internal/show/report"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

const attachedFile = `
knowledge "k" {
  embed { use = "alphabet" }
  store {
    use = "theirs_file"
    config { collection = "COLLECTION" }
  }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" {
    from  = knowledge.k
    top_k = 3
  }
  sample "vote" { use = "neighbours" }
  sample "learnt" { use = "words" }
  elect "e" { use = "soft" }
}
`

// theirs is another program's collection, with a pipeline that attaches it.
type theirs struct {
	t          *testing.T
	dir, path  string
	collection string
	o          workspace.Options
	reports    []knowledge.BuildReport
}

func newTheirs(t *testing.T) *theirs {
	c := &theirs{t: t, dir: t.TempDir()}
	c.path, c.collection = filepath.Join(c.dir, "p.hcl"), filepath.Join(c.dir, "collection.json")
	c.o = workspace.Options{Builtin: builtin, State: filepath.Join(c.dir, "state")}
	c.o.Events.Knowledge = func(r knowledge.BuildReport) { c.reports = append(c.reports, r) }
	c.file(c.path, strings.Replace(attachedFile, "COLLECTION", c.collection, 1))
	c.file(filepath.Join(c.dir, "items.tsv"), "id\ttext\tlabel\na\tapple\tfruit\nb\ttram\tvehicle\n")
	c.change("1", fruit()...)
	return c
}

func (c *theirs) file(path, text string) {
	c.t.Helper()
	must.Do(c.t, os.WriteFile(path, []byte(text), 0o600))
}

func (c *theirs) change(id string, entries ...sdk.Entry) {
	c.t.Helper()
	text, err := json.Marshal(enginetest.Filed{ID: id, Entries: entries})
	must.Do(c.t, err)
	c.file(c.collection, string(text))
}

// open opens the pipeline, with its own processes.
func (c *theirs) open(t *testing.T, change ...func(*workspace.Options)) *workspace.Pipeline {
	t.Helper()
	o := c.o
	for _, do := range change {
		do(&o)
	}
	p := mustOpen(t, c.path, o)
	t.Cleanup(p.Close)
	return p
}

func (c *theirs) workspace() *workspace.Workspace {
	c.t.Helper()
	w, err := workspace.NewWorkspace(c.t.Context(), c.o)
	must.Do(c.t, err)
	c.t.Cleanup(w.Close)
	return w
}

func fruit() []sdk.Entry {
	var all []sdk.Entry
	for i := range 20 {
		text, label := fmt.Sprintf("apple pear %c", 'a'+i), "fruit"
		if i%2 == 1 {
			text, label = fmt.Sprintf("bus tram %c", 'a'+i), "vehicle"
		}
		all = append(all, sdk.Entry{ID: fmt.Sprintf("e%02d", i), Text: text, Label: label, Vector: enginetest.AlphabetOf(text)})
	}
	return all
}

// The plan shows the meaning of fields, the sample, and the cosine, to people and to programs.
func TestPlanOfAttached(t *testing.T) {
	c := newTheirs(t)
	plan, err := c.open(t).Plan(t.Context())
	must.Do(t, err)
	var text, numbers bytes.Buffer
	must.Do(t, errors.Join(report.Plan(&text, plan), report.PlanJSON(&numbers, plan)))
	for _, want := range []string{
		"20       read only", "collection theirs: all of it read as the sample, mean cosine 1.000 with the vectors of alphabet over 20 entries",
		"text from content (the only text)", "A note of the store.", "k, dense (hybrid, without words)",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	var shown struct {
		Knowledge []struct {
			Entries, Sample int
			ToEmbed         int `json:"to_embed"`
			Attached        struct {
				Collection       string
				Fields           []sdk.AttachedField
				Notes            []string
				Lexical, Whole   bool
				Sample, Compared int
				Cosine           float64
			}
		}
	}
	must.Do(t, json.Unmarshal(numbers.Bytes(), &shown))
	k := shown.Knowledge[0]
	a := k.Attached
	must.Equal(t, "entries, to embed, collection, lexical, whole, sample, compared, cosine, notes", []any{20, 0, "theirs", false, true, 20, 20, "1.000", 1},
		[]any{k.Entries, k.ToEmbed, a.Collection, a.Lexical, a.Whole, a.Sample, a.Compared, fmt.Sprintf("%.3f", a.Cosine), len(a.Notes)})
	must.Equal(t, "fields", []sdk.AttachedField{{Part: "text", Field: "content", Why: "the only text"}}, a.Fields)
}

// A run, an evaluation and an explanation of an attached collection. What was learned from its sample is
// not learned again.
func TestWorkOnAttached(t *testing.T) {
	c := newTheirs(t)
	work := func(change ...func(*workspace.Options)) (results []outcome.Result, out *workspace.Outcome) {
		t.Helper()
		p := c.open(t, append(change, func(o *workspace.Options) { o.Journal, o.Keep = true, journal.KeepAll })...)
		defer p.Close()
		out, err := p.Work(t.Context(), func(batch []outcome.Result) error { results = append(results, batch...); return nil }, nil)
		must.Do(t, err)
		return results, out
	}
	results, out := work()
	if out.Items != 2 || results[0].Answer != "fruit" || results[1].Answer != "vehicle" {
		t.Errorf("%+v", results)
	}
	learnt, _ := filepath.Glob(filepath.Join(c.o.State, "fitted", "attached-k-*", "*"))
	if len(learnt) != 1 {
		t.Errorf("learnt: %q", learnt)
	}
	c.change("1", fruit()[:18]...) // fewer entries, by less than a fifth
	if _, out = work(); out.Items != 2 {
		t.Errorf("%+v", out)
	}
	if again, _ := filepath.Glob(filepath.Join(c.o.State, "fitted", "attached-k-*", "*")); len(again) != 1 || again[0] != learnt[0] {
		t.Errorf("learnt again: %q", again)
	}
	if r := c.reports[len(c.reports)-1]; r.Entries != 18 || !r.Attached.Kept || r.Attached.Sample != 20 {
		t.Errorf("%+v, %+v", r, r.Attached)
	}
	measured, err := c.open(t).Evaluate(t.Context(), eval.Options{})
	if err != nil || measured.Rows[0].Report.Accuracy != 1 {
		t.Fatalf("%+v, %v", measured, err)
	}

	look := func() *explain.Item {
		t.Helper()
		r, err := explain.Open(t.Context(), workspace.Options{Builtin: builtin, State: c.o.State}, workspace.Newest)
		must.Do(t, err)
		defer r.Close()
		one, err := r.Item(t.Context(), "a")
		must.Do(t, err)
		return one
	}
	if one := look(); len(one.Gone) > 0 || len(one.Lists) != 1 || len(one.Lists[0].Candidates) != 3 || !strings.Contains(one.Lists[0].Candidates[0].Text, "apple") {
		t.Errorf("%+v", one)
	}
	c.change("2", fruit()...)
	if one := look(); len(one.Gone) != 1 || !strings.Contains(one.Gone[0], "another collection stands behind the name theirs since") {
		t.Errorf("%q", one.Gone)
	}
}

// Nothing of the collection is built, listed as racflow's index version, or removed.
func TestAttachedIsReadOnly(t *testing.T) {
	c := newTheirs(t)
	w := c.workspace()
	if err := w.Histories(t.Context(), c.path, func(block *pipeline.Knowledge, h *generation.History) error {
		if len(h.Generations) != 1 || h.Generations[0].State != generation.Attached || h.Generations[0].Entries != 20 || len(h.Superseded(true)) > 0 {
			t.Errorf("%+v", h.Generations)
		}
		if err := h.Remove(t.Context(), h.Generations[0]); err == nil || !strings.Contains(err.Error(), "collection theirs is read only") {
			t.Errorf("remove: %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	found, err := w.Diagnose(t.Context(), c.path, 10)
	if err != nil || len(found.Skipped) != 1 || !strings.Contains(found.Skipped[0], "which racflow only reads") {
		t.Errorf("doctor: %+v, %v", found, err)
	}
}

// Refresh reads the sample again. An opening does not do this by itself if rows were changed in place.
func TestRefresh(t *testing.T) {
	c := newTheirs(t)
	labels := func() string {
		t.Helper()
		r, err := c.open(t).Start(t.Context())
		must.Do(t, err)
		return strings.Join(r.Labels(), " ")
	}
	before := labels()
	rows := fruit()
	rows[0].Label = "dessert"
	c.change("1", rows...)
	if got := labels(); got != before {
		t.Errorf("labels %q, want %q still", got, before)
	}
	must.Do(t, c.workspace().Refresh(t.Context(), c.path))
	if got := labels(); got != "dessert fruit vehicle" {
		t.Errorf("labels %q", got)
	}
	built, o := write(t, knowledgeBlock+election)
	w, err := workspace.NewWorkspace(t.Context(), o)
	must.Do(t, err)
	defer w.Close()
	if err := w.Refresh(t.Context(), built); err == nil || !strings.Contains(err.Error(), "attaches no collection") {
		t.Errorf("knowledge that is built: %v", err)
	}
}

// If a line of the file can correct an error, the error points at that line.
func TestUnusableCollection(t *testing.T) {
	other := fruit()
	for i := range other {
		other[i].Vector = enginetest.AlphabetOf("zzz")
	}
	for name, change := range map[string]func(*theirs) (line int, want string){
		"another embedder": func(c *theirs) (int, string) {
			c.change("1", other...)
			return 3, "are not those of alphabet: mean cosine 0.00 over 20 entries"
		},
		"another dimension": func(c *theirs) (int, string) {
			c.change("1", sdk.Entry{ID: "a", Text: "a", Vector: []float32{1}})
			return 3, "have 1 dimensions, and those of alphabet have 26"
		},
	} {
		c := newTheirs(t)
		line, want := change(c)
		_, err := c.open(t).Start(t.Context())
		found := new(workspace.DiagnosticsError)
		if !errors.As(err, &found) || len(found.Diagnostics) != 1 || found.Diagnostics[0].Subject.Start.Line != line || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := newTheirs(t)
	must.Do(t, os.Remove(c.collection))
	if _, err := c.open(t).Start(t.Context()); err == nil || !strings.Contains(err.Error(), "was dropped: attach another one") {
		t.Errorf("dropped: %v", err)
	}
}
