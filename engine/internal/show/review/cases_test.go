package review

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/show/explain"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Items without an answer come first, then items with the least confidence or, without a
// confidence, the least agreement. The labels to choose from are the voters' answers, the heaviest
// first.
func TestCasesOfItems(t *testing.T) {
	item := func(line int, r result.Result) *explain.Item {
		r.Text, r.ID = string(rune('a'+line)), string(rune('0'+line))
		return &explain.Item{Brief: explain.Brief{Result: r, Line: line}}
	}
	vote := func(answer string, weight float64, accepted bool) result.Vote {
		return result.Vote{Answer: answer, Weight: weight, Accepted: accepted}
	}
	items := []*explain.Item{
		item(1, result.Result{Answer: "x", Verdict: result.Verdict{Confidence: .9, Agreement: .1, Flagged: true}}),
		item(2, result.Result{Answer: "x", Verdict: result.Verdict{Agreement: .5, Flagged: true}}),
		item(3, result.Result{Verdict: result.Verdict{Reason: "no vote was accepted"}}),
		item(4, result.Result{Error: &result.Failure{Stage: "sample.llm", Message: "it hangs"}}),
		item(5, result.Result{
			Answer: "x", Verdict: result.Verdict{Confidence: .2, RunnerUp: "y", Flagged: true}, Expected: "e",
			Votes: []result.Vote{vote("z", .3, true), vote("no", 1, false), vote("w", .2, true), vote("w", .2, true)},
		}),
	}
	var cases []Case
	for _, i := range items {
		if doubtful(&i.Brief) {
			cases = append(cases, caseOf(i, sdk.LabelForm{}))
		}
	}
	q := NewQueue(filepath.Join(t.TempDir(), "r.jsonl"), "run-000001", cases, nil, sdk.LabelForm{})
	var order, why []string
	for _, c := range q.Cases() {
		order, why = append(order, c.Items[0]), append(why, c.Why[0])
	}
	if d := cmp.Diff([]string{"3", "4", "5", "2", "1"}, order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"it has no answer: no vote was accepted", "it failed: sample.llm: it hangs", "it is flagged", "it is flagged", "it is flagged"}, why); d != "" {
		t.Errorf("why (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"x", "y", "w", "z", "e"}, q.Cases()[2].Suggestions); d != "" {
		t.Errorf("suggestions (-want +got):\n%s", d)
	}
	if sure := (&explain.Brief{Result: result.Result{Answer: "x"}}); doubtful(sure) {
		t.Error("an answer that is not flagged is doubtful")
	}
}

func TestFind(t *testing.T) {
	rows := func(name, reviewed string) *pipeline.Knowledge {
		k := &pipeline.Knowledge{Name: name, Sources: []pipeline.Source{{Path: "/d/rows.tsv"}}}
		if reviewed != "" {
			k.Sources = append(k.Sources, pipeline.Source{Path: reviewed, Reviewed: true})
		}
		return k
	}
	documents := &pipeline.Knowledge{Name: "docs", Sources: []pipeline.Source{{Path: "/d/docs", Documents: &document.Set{}}}}
	const lines = "  source {\n    path     = %\n    reviewed = true\n  }\n"
	add := func(path string) string { return strings.ReplaceAll(lines, "%", `"`+path+`"`) }
	for name, test := range map[string]struct {
		blocks            []*pipeline.Knowledge
		name, path, wrong string
		want              Place
	}{
		"as the file says":      {[]*pipeline.Knowledge{documents, rows("k", "/d/sub/r.jsonl")}, "", "", "", Place{"k", "/d/sub/r.jsonl", ""}},
		"the file says nothing": {[]*pipeline.Knowledge{rows("k", "")}, "", "", "", Place{"k", "/d/reviewed.jsonl", add("reviewed.jsonl")}},
		"elsewhere":             {[]*pipeline.Knowledge{rows("k", "/d/r.jsonl")}, "", "/e/r.jsonl", "", Place{"k", "/e/r.jsonl", add("../e/r.jsonl")}},
		"the same, said twice":  {[]*pipeline.Knowledge{rows("k", "/d/r.jsonl")}, "", "/d/r.jsonl", "", Place{"k", "/d/r.jsonl", ""}},
		"the one that learns":   {[]*pipeline.Knowledge{rows("a", ""), rows("b", "/d/r.jsonl")}, "", "", "", Place{"b", "/d/r.jsonl", ""}},
		"the one that is named": {[]*pipeline.Knowledge{rows("a", ""), rows("b", "/d/r.jsonl")}, "a", "", "", Place{"a", "/d/reviewed.jsonl", add("reviewed.jsonl")}},
		"several":               {[]*pipeline.Knowledge{rows("a", ""), rows("b", "")}, "", "", `say with --knowledge which one learns from the decisions: "a", "b"`, Place{}},
		"documents alone":       {[]*pipeline.Knowledge{documents}, "", "", "searches no knowledge that is made of rows", Place{}},
		"a name of none":        {[]*pipeline.Knowledge{rows("a", "")}, "docs", "", `no knowledge "docs" that is made of rows`, Place{}},
	} {
		got, err := Find("/d/p.hcl", test.blocks, test.name, test.path)
		if test.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: %v", name, err)
			}
		} else if d := cmp.Diff(test.want, got); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
}

// TestSuggestions: for a set, its labels come first, the surest first, and voters suggest single
// labels. For a tree, the nodes down to the likeliest label come after the answer.
func TestSuggestions(t *testing.T) {
	many, tree := sdk.LabelForm{Many: true}, sdk.LabelForm{Levels: "/"}
	for name, test := range map[string]struct {
		form   sdk.LabelForm
		result result.Result
		want   []string
	}{
		"a set": {many, result.Result{
			Answer: "a; b", Verdict: result.Verdict{Labels: []sdk.LabelConfidence{{Label: "b", Confidence: .9}, {Label: "a", Confidence: .6}}}, Expected: "b; e",
			Votes: []result.Vote{{Answer: "c", Weight: .3, Accepted: true}, {Answer: "b", Weight: .9, Accepted: true}},
		}, []string{"b", "a", "c", "e"}},
		"a tree": {tree, result.Result{
			Answer: "x/y", Verdict: result.Verdict{Labels: []sdk.LabelConfidence{{Label: "x", Confidence: .99}, {Label: "x/y", Confidence: .96}, {Label: "x/y/z", Confidence: .5}}},
			Votes: []result.Vote{{Answer: "x/y/w", Weight: .4, Accepted: true}},
		}, []string{"x/y", "x/y/z", "x", "x/y/w"}},
	} {
		c := caseOf(&explain.Item{Brief: explain.Brief{Result: test.result}}, test.form)
		if d := cmp.Diff(test.want, c.Suggestions); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
