package run_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// attachedFile is a pipeline over a collection of another program.
const attachedFile = `
knowledge "k" {
  embed { use = "alphabet" }
  store {
    use = "theirs"
    config { collection = "theirs" }
  }
}
pipeline "p" {
  retrieve "near" {
    from  = knowledge.k
    mode  = "MODE"
    top_k = 3
  }
  STAGES
}
`

// voting has voters that need every part of a sample.
const voting = `
  sample "near" { use = "neighbours" }
  sample "centroid" { use = "prototype" }
  sample "learnt" { use = "words" }
  elect "e" {
    use    = "witness"
    accept = "answer in labels"
  }`

// fruits are entries with labels.
func fruits() []sdk.Entry {
	var all []sdk.Entry
	for i := range 12 {
		text, label := fmt.Sprintf("apple pear %c", 'a'+i), "fruit"
		if i%2 == 1 {
			text, label = fmt.Sprintf("bus tram %c", 'a'+i), "vehicle"
		}
		all = append(all, sdk.Entry{ID: fmt.Sprintf("e%02d", i), Text: text, Label: label, Vector: enginetest.AlphabetOf(text), Meta: sdk.Meta{"n": float64(i)}})
	}
	return all
}

// openAttached opens a run over a collection that another program has made, and fills the given report.
func openAttached(t *testing.T, theirs *enginetest.External, mode, stages string, report ...*knowledge.BuildReport) (*run.Run, error) {
	t.Helper()
	catalog := append(enginetest.Catalog(enginetest.Stages()), enginetest.Alphabet(), theirs.Stage())
	dir := t.TempDir()
	o := run.Options{Samples: filepath.Join(dir, "attached")}
	o.Fitted = filepath.Join(dir, "fitted")
	for _, to := range report {
		o.Knowledge = func(r knowledge.BuildReport) { *to = r }
	}
	return runtest.Open(t, catalog, o, map[string]string{runtest.File: strings.NewReplacer("MODE", mode, "STAGES", stages).Replace(attachedFile)})
}

// The same rows give the same answers, whether racflow or another program built the knowledge.
func TestAttachedAnswersAsBuilt(t *testing.T) {
	texts := []string{"apple", "tram", "pear bus", "a", "zzz"}
	var report knowledge.BuildReport
	theirs := must.Get(openAttached(t, enginetest.NewExternal("1", true, fruits()...), "hybrid", voting, &report))(t)
	a := report.Attached
	must.Equal(t, "the report", "12 entries, a sample of 12, whole: true; 12 compared, with a cosine of 1.000",
		fmt.Sprintf("%d entries, a sample of %d, whole: %t; %d compared, with a cosine of %.3f", report.Entries, a.Sample, a.Whole, a.Compared, a.Cosine))
	if g := theirs.Generations(); len(g) != 1 || !g[0].Attached || g[0].Collection != "theirs" {
		t.Errorf("%+v", g)
	}
	rows := "id\ttext\tlabel\n"
	for _, e := range fruits() {
		rows += e.ID + "\t" + e.Text + "\t" + e.Label + "\n"
	}
	file := strings.NewReplacer("MODE", "hybrid", "STAGES", voting, `use = "theirs"
    config { collection = "theirs" }`, `use = "memory"`, `embed {`, "source { path = \"rows.tsv\" }\n  embed {").Replace(attachedFile)
	o := run.Options{}
	o.Fitted = t.TempDir()
	built, err := runtest.Open(t, append(enginetest.Catalog(enginetest.Stages()), enginetest.Alphabet()), o, map[string]string{runtest.File: file, "rows.tsv": rows})
	must.Do(t, err)
	brief := func(all []outcome.Result) (brief []string) {
		for _, r := range all {
			brief = append(brief, fmt.Sprintf("%s %s %.4f %+v", r.ID, r.Answer, r.Confidence, r.Votes))
		}
		return brief
	}
	want, got := runtest.Answered(t, built, texts...), runtest.Answered(t, theirs, texts...)
	must.Equal(t, "built and attached", brief(want), brief(got))
	if got[0].Answer != "fruit" || got[1].Answer != "vehicle" {
		t.Errorf("%+v", got)
	}
	if labels := theirs.Labels(); !slices.Equal(labels, []string{"fruit", "vehicle"}) {
		t.Errorf("labels %q", labels)
	}
}

// A store gets the lengths in the sample with each search.
func TestAttachedNorms(t *testing.T) {
	for _, length := range []float32{1, 3} {
		entries := fruits()
		for i := range entries {
			v := entries[i].Vector
			norm := float32(math.Sqrt(generation.Dot(v, v)))
			for d := range v {
				v[d] *= length / norm
			}
		}
		theirs := enginetest.NewExternal("1", true, entries...)
		r := must.Get(openAttached(t, theirs, "hybrid", ""))(t)
		runtest.Answered(t, r, "apple")
		want := 0.0
		if length != 1 {
			want = float64(length)
		}
		if s := theirs.Searched.Load(); s == nil || math.Abs(s.Norm-want) > 1e-5 {
			t.Errorf("vectors of length %v: %+v, want the norm %v", length, s, want)
		}
	}
}

// A collection without words is searched by meaning; a search only by words is refused.
func TestAttachedWithoutWords(t *testing.T) {
	vote := `
  sample "near" { use = "neighbours" }
  elect "e" { use = "soft" }`
	r := must.Get(openAttached(t, enginetest.NewExternal("1", false, fruits()...), "hybrid", vote))(t)
	if got := runtest.Answered(t, r, "apple"); got[0].Answer != "fruit" {
		t.Errorf("%+v", got)
	}
	_, err := openAttached(t, enginetest.NewExternal("1", false, fruits()...), "lexical", vote)
	if err == nil || !strings.Contains(err.Error(), `retrieve.near: knowledge "k": collection theirs cannot be searched by words alone: use mode = "dense", or name a field`) {
		t.Errorf("lexical: %v", err)
	}
}

func TestAttachedWithoutLabels(t *testing.T) {
	entries := fruits()
	for i := range entries {
		entries[i].Label = ""
	}
	theirs := enginetest.NewExternal("1", true, entries...)
	_, err := openAttached(t, theirs, "hybrid", voting)
	if err == nil || !strings.Contains(err.Error(), `no entry of theirs has a label`) || !strings.Contains(err.Error(), `name the field that holds it with label = "..." in the config of its store`) {
		t.Errorf("%v", err)
	}
	r := must.Get(openAttached(t, theirs, "hybrid", ""))(t) // the candidates are the answer
	if got := runtest.Answered(t, r, "apple"); len(got[0].Candidates) != 3 || got[0].Candidates[0].Text == "" {
		t.Errorf("%+v", got)
	}
}

// If the owner drops the collection in the middle of a run, items fail with advice, and earlier
// items keep their answers.
func TestAttachedIsDropped(t *testing.T) {
	theirs := enginetest.NewExternal("1", true, fruits()...)
	r := must.Get(openAttached(t, theirs, "hybrid", voting))(t)
	rows := make([]source.Row, 2000)
	for i := range rows {
		rows[i] = source.Row{Line: i + 2, Text: "apple"}
	}
	next, right, failed := runtest.Rows(rows...), 0, 0
	var why string
	totals, err := r.Items(t.Context(), next, nil, runtest.Each(func(one outcome.Result) error {
		if one.Failure == nil {
			right++
			theirs.Drop() // after the first answer
			return nil
		}
		failed++
		why = one.Failure.Error()
		return nil
	}))
	must.Do(t, err)
	if right == 0 || failed == 0 || totals.Failed != failed || right+failed != len(rows) {
		t.Errorf("of %d rows %d are answered, %d failed: %+v", len(rows), right, failed, totals)
	}
	if !strings.Contains(why, "was dropped: attach another one") {
		t.Errorf("they failed, for %s", why)
	}
}

func TestAttachedAbsent(t *testing.T) {
	r := must.Get(openAttached(t, enginetest.NewExternal("1", true, fruits()...), "hybrid", ""))(t)
	absent, err := r.Absent(t.Context(), []source.Gold{{IDs: []string{"e03"}}, {IDs: []string{"gone"}}, {IDs: []string{"gone"}, Quote: "no such words"}})
	if err != nil || len(absent) != 1 || absent[0].IDs[0] != "gone" || absent[0].Quote != "" {
		t.Errorf("%+v, %v", absent, err)
	}
}

// Another collection with the same name, or many more entries, are noticed.
func TestAttachedMoves(t *testing.T) {
	theirs := enginetest.NewExternal("1", true, fruits()...)
	r := must.Get(openAttached(t, theirs, "hybrid", voting))(t)
	for _, step := range []struct {
		id    string
		rows  int
		moved bool
	}{{"1", 12, false}, {"1", 10, false}, {"1", 9, true}, {"2", 12, true}} {
		theirs.Change(step.id, fruits()[:step.rows]...)
		if moved, err := r.Moved(t.Context()); moved != step.moved || err != nil {
			t.Errorf("%+v: %t, %v", step, moved, err)
		}
	}
}

// A rule may return the whole collection if the sample had all entries.
func TestAttachedAsAWhole(t *testing.T) {
	r := must.Get(openAttached(t, enginetest.NewExternal("1", true, fruits()...), "hybrid\"\n    whole = \"knowledge.entries < 13 && knowledge.tokens < 1000", ""))(t)
	if got := runtest.Answered(t, r, "apple"); len(got[0].Candidates) != 12 {
		t.Errorf("%d candidates", len(got[0].Candidates))
	}
}
