package expect_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/internal/workspace/expect"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// builtin is the result of the first statement of main.
var builtin = workspace.Serve(enginetest.Stages())

// pipelineOf returns a pipeline that votes by neighbours, with expectations.
func pipelineOf(expects string) string {
	return `
variable "embedder" { default = "hashing" }
variable "known" {
  type    = path
  default = "rows.tsv"
}
knowledge "k" {
  source { path = var.known }
  embed { use = var.embedder }
  store { use = "memory" }
}
pipeline "p" {
  input { path = "in.tsv" }
  retrieve "near" {
    from  = knowledge.k
    top_k = 3
  }
  sample "vote" { use = "neighbours" }
  elect "e" {
    use    = "soft"
    accept = "answer in labels"
    flag   = "item.text contains 'doubtful'"
  }
` + expects + "}\n"
}

const (
	known = "id\ttext\tlabel\nr1\tred apple\tfruit\nr2\tgreen pear\tfruit\nr3\tblue car\tvehicle\nr4\tfast train\tvehicle\n"
	// Four of five are right. No apple is a vehicle, and one text is in the knowledge.
	items = "id\ttext\tlabel\tgold\n1\ta red apple\tfruit\tr1\n2\tone doubtful green pear\tfruit\tr2\n3\tblue car \tvehicle\tr3\n4\tvery fast train\tvehicle\tr4\n5\tsome red apple\tvehicle\tr4\n"
)

// folder writes files, and opens the pipeline p.hcl among them.
func folder(t *testing.T, files map[string]string, change ...func(*workspace.Options)) *workspace.Pipeline {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := workspace.Options{Builtin: builtin, State: filepath.Join(dir, "state")}
	for _, c := range change {
		c(&o)
	}
	p, err := workspace.Open(t.Context(), filepath.Join(dir, "p.hcl"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestFigures measures every figure once, on items with known results.
func TestFigures(t *testing.T) {
	tests := []struct {
		rule  string
		holds bool
		says  string // part of the first figure or of the reason
		needs string
	}{
		{`accuracy >= 0.8`, true, "0.8, 4 of 5", ""},
		{`accuracy > 0.8`, false, "0.8, 4 of 5", "needs at least 5 of 5, 1 more"},
		{`low(accuracy) >= 0.5`, false, "0.8, 4 of 5", "needs at least 5 of 5, 1 more"},
		{`low(accuracy) >= 0.9`, false, "0.8, 4 of 5", "cannot be shown by 5 items, whatever their answers are"},
		{`recall("vehicle") >= 0.6 and precision("vehicle") == 1`, true, "0.6666666666666666, 2 of 3", ""},
		{`precision("fruit") >= 0.9`, false, "0.6666666666666666, 2 of 3", "needs at least 3 of 3, 1 more"},
		{`recall("vehicel") >= 0.9`, false, `no item has the label "vehicel". Did you mean "vehicle"?`, ""},
		{`precision("ship") >= 0`, false, `no item was answered "ship".`, ""},
		{`f1 > 0.79 and f1 < 0.81`, true, "0.8", ""},
		{`flagged <= 0.1`, false, "0.2, 1 of 5", "allows at most 0 of 5, 1 fewer"},
		{`high(flagged) <= 0.1`, false, "0.2, 1 of 5", "cannot be shown by 5 items, whatever their answers are"},
		{`failed == 0`, true, "0, 0 of 5", ""},
		{`answered(0.5) == 1`, false, "0, 0 of 5; ", "off by 1"},
		{`answered(0.1) >= 0.6`, true, "of 5; ", ""},
		{`answer("the red apple") == "fruit"`, true, "fruit", ""},
		{`answer("the red apple") in ["vehicle", "none"]`, false, "fruit", ""},
		{`found("red apple?", "r1", 1)`, true, "true; rank 1 of 3: r1", ""},
		{`found("red apple?", "blue car", 1)`, false, "false; ", ""},
		{`found("red apple?", "a passage of nobody")`, false, "false; it is not among the 3 that are found; the first is r1", ""},
		{`recall_at(1) >= 0.8 and ndcg > 0.79 and mrr > 0.79`, true, "0.8; retrieve.near, of 5 items with gold passages", ""},
		{`recall_at(1) > 0.9`, false, "0.8; retrieve.near, of 5 items with gold passages", "recall_at(1) > 0.9: it is off by 0.1"},
		{`mrr > 0.8`, false, "0.8; retrieve.near", "mrr > 0.8: it is exactly that"},
		{`cost_per_1000 <= 0.5`, true, "0; 0 for 5 items", ""},
		{`leaked == 0`, false, "1; line 4 as ", "leaked == 0: it is off by 1"},
	}
	var expects strings.Builder
	for i, test := range tests {
		fmt.Fprintf(&expects, "  expect \"e%d\" {\n    rule = <<E\n%s\nE\n  }\n", i, test.rule)
	}
	expects.WriteString("  expect \"off\" {\n    rule = \"accuracy > 2\"\n    enabled = false\n  }\n")
	builds := 0
	p := folder(t, map[string]string{"p.hcl": pipelineOf(expects.String()), "rows.tsv": known, "in.tsv": items}, func(o *workspace.Options) {
		o.Events.Knowledge = func(knowledge.BuildReport) { builds++ }
	})
	r, err := expect.Test(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if builds != 1 {
		t.Errorf("the stages were started %d times", builds)
	}
	for i, test := range tests {
		v := r.Verdicts[i]
		says := v.Reason
		if f := v.Figures[0]; says == "" {
			if says = fmt.Sprint(f.Value); f.Of > 0 {
				says += fmt.Sprintf(", %d of %d", f.Count, f.Of)
			}
			if f.Note != "" {
				says += "; " + f.Note
			}
			if f.Interval != nil && (f.Value.(float64) < f.Interval.Low || f.Value.(float64) > f.Interval.High) {
				t.Errorf("%s: %v is not within %v", test.rule, f.Value, f.Interval)
			}
		}
		if holds := v.Outcome == expect.Holds; holds != test.holds || !strings.Contains(says, test.says) || !strings.Contains(strings.Join(v.Needs(), "; "), test.needs) {
			t.Errorf("%s: %s, %s; needs %q", test.rule, v.Outcome, says, v.Needs())
		}
	}
	if off := r.Verdicts[len(tests)]; off.Outcome != expect.Skipped || r.Count(expect.Skipped) != 1 || r.Holds() {
		t.Errorf("%+v", off)
	}
	if r.Verdicts[0].Line != 24 || r.Verdicts[0].Items != 5 || filepath.Base(r.Verdicts[0].Input) != "in.tsv" || r.Verdicts[15].Items != 5 {
		t.Errorf("%+v", r.Verdicts[0])
	}
}

// TestFiguresAreThoseOfEval: the same names mean the same figures.
func TestFiguresAreThoseOfEval(t *testing.T) {
	p := folder(t, map[string]string{"p.hcl": pipelineOf(`
  expect "all" { rule = "accuracy + f1 + recall_at(2) + ndcg + mrr + recall('fruit') + precision('fruit') >= 0" }
`), "rows.tsv": known, "in.tsv": items + "6\tfast red pear\tship\tr2 r1\n7\tgreen train\tvehicle\t\n"})
	r, err := expect.Test(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	found, err := p.Evaluate(t.Context(), eval.Options{Cuts: []int{2}})
	if err != nil {
		t.Fatal(err)
	}
	e := found.Rows[0].Report
	last := e.Retrieval.Stages[len(e.Retrieval.Stages)-1]
	want := map[string]float64{"accuracy": e.Accuracy, "f1": e.MacroF1, "recall_at(2)": last.Recall[0].Share, "ndcg": last.NDCG, "mrr": last.MRR}
	for _, l := range e.Labels {
		if l.Label == "fruit" {
			want[`recall("fruit")`], want[`precision("fruit")`] = l.Recall, l.Precision
		}
	}
	if len(r.Verdicts[0].Figures) != len(want) {
		t.Errorf("%d figures", len(r.Verdicts[0].Figures))
	}
	for _, f := range r.Verdicts[0].Figures {
		if got := f.Value.(float64); got < want[f.Figure]-1e-12 || got > want[f.Figure]+1e-12 {
			t.Errorf("%s is %v, racflow eval has %v", f.Figure, got, want[f.Figure])
		}
	}
}

// TestF1OfSets: if answers are sets, F1 and its interval cover each label.
func TestF1OfSets(t *testing.T) {
	text := strings.Replace(pipelineOf(`  expect "f1" { rule = "f1 >= 0 and low(f1) >= 0" }`+"\n"), "{ path = var.known }", "{\n path = var.known\n labels = \"many\"\n}", 1)
	p := folder(t, map[string]string{
		"p.hcl":    text,
		"rows.tsv": "text\tlabel\nred apple\tfruit;red\ngreen pear\tfruit\nred car\tvehicle;red\nfast train\tvehicle\n",
		"in.tsv":   "text\tlabel\na red apple\tfruit;red\na green pear\tfruit;green\na fast red car\tvehicle\na very fast train\tvehicle\n",
	})
	r, err := expect.Test(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	found, err := p.Evaluate(t.Context(), eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report, f1 := found.Rows[0].Report, r.Verdicts[0].Figures[0]
	if report.Sets == nil || f1.Value != report.MacroF1 || f1.Interval == nil || *f1.Interval != report.Sets.MacroF1Interval {
		t.Errorf("%+v, of %+v", f1, report.Sets)
	}
}

// TestOwnInputAndVariables: an expectation may have its own items and values.
func TestOwnInputAndVariables(t *testing.T) {
	p := folder(t, map[string]string{"p.hcl": pipelineOf(`
  expect "own" { rule = "accuracy >= 0.75 and leaked == 1" }
  expect "other-items" {
    rule = "accuracy == 1 and leaked == 0"
    input {
      path  = "other.csv"
      label = "class"
    }
  }
  expect "other-knowledge" {
    rule      = "accuracy < 0.5 and answer('red apple') == 'vehicle'"
    variables = { known = "swapped.tsv" }
  }
`), "rows.tsv": known, "in.tsv": items, "other.csv": "text,class\nmy red apple,fruit\n",
		"swapped.tsv": "text\tlabel\nred apple\tvehicle\ngreen pear\tvehicle\nblue car\tfruit\nfast train\tfruit\n"})
	r, err := expect.Test(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Verdicts {
		if v.Outcome != expect.Holds {
			t.Errorf("%+v", v)
		}
	}
	if other := r.Verdicts[1]; filepath.Base(other.Input) != "other.csv" || other.Items != 1 {
		t.Errorf("%+v", other)
	}
	if set := r.Verdicts[2].Variables["known"]; !filepath.IsAbs(set) || filepath.Base(set) != "swapped.tsv" {
		t.Errorf("the variable is %q", set)
	}
}

// Items that people have decided are not scored in any figure, and do not count as leaks.
func TestDecidedItems(t *testing.T) {
	p := folder(t, map[string]string{
		"p.hcl": strings.Replace(pipelineOf(`
  expect "e" { rule = "accuracy == 0.75 and leaked == 0 and recall_at(1) == 0.75" }
`), "source { path = var.known }", "source { path = var.known }\n  source {\n    path     = \"decided.jsonl\"\n    reviewed = true\n  }", 1),
		"rows.tsv": known, "in.tsv": items,
		"decided.jsonl": `{"id":"r-1","text":"Blue  car","label":"vehicle","reviewer":"Ada","reviewed_at":"2026-11-23T10:00:00Z"}` + "\n",
	})
	r, err := expect.Test(t.Context(), p, nil)
	if err != nil || r.Verdicts[0].Outcome != expect.Holds {
		t.Errorf("got %+v, %v", r, err)
	}
}

// An error that a value causes appears when the file is loaded with that value.
func TestWrongVariables(t *testing.T) {
	p := folder(t, map[string]string{"p.hcl": pipelineOf(`
  expect "wrong" {
    rule      = "accuracy > 0"
    variables = { embedder = "nowhere" }
  }
`), "rows.tsv": known, "in.tsv": items})
	_, err := expect.Test(t.Context(), p, nil)
	var found *workspace.DiagnosticsError
	if !errors.As(err, &found) || !strings.Contains(err.Error(), `expect.wrong: `) || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("got %v", err)
	}
}

// TestNotMeasured: a rule with an unmeasurable figure does not hold, whatever the rule.
func TestNotMeasured(t *testing.T) {
	for name, test := range map[string]struct {
		files      map[string]string
		rule, want string
	}{
		"no gold":      {map[string]string{"in.tsv": "text\tlabel\nred apple\tfruit\n"}, "ndcg < 2", "no item has gold passages"},
		"no labels":    {map[string]string{"in.tsv": "text\nred apple\n"}, "accuracy < 2", ""},
		"no such text": {map[string]string{"in.tsv": "text\tlabel\n"}, "flagged == 0", "the input has no items"},
		"a question":   {nil, `not found(" ", "r1")`, "the text is empty"},
		"a failure":    {nil, `answer(" ") == ""`, "the text is empty"},
		"other figure": {map[string]string{"in.tsv": "text\nred apple\n"}, "flagged == 0 or recall_at(3) > 0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"p.hcl": pipelineOf("  expect \"e\" {\n    rule = <<E\n" + test.rule + "\nE\n  }\n"), "rows.tsv": known, "in.tsv": items}
			for name, text := range test.files {
				files[name] = text
			}
			r, err := expect.Test(t.Context(), folder(t, files), nil)
			if test.want == "" {
				if err == nil || !strings.Contains(err.Error(), "has a label to compare answers with") {
					t.Errorf("got %+v, %v", r, err)
				}
				return
			}
			if err != nil || r.Verdicts[0].Outcome != expect.Fails || !strings.Contains(r.Verdicts[0].Reason, test.want) {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

// TestBaseline compares with a run that gave other answers to some items.
func TestBaseline(t *testing.T) {
	tests := map[string]struct {
		lost, gained int
		worse        bool
		chance       float64 // 2 * P(X <= min) for a fair coin
	}{
		"nothing changed": {0, 0, false, 1}, "perhaps chance": {5, 0, false, 2. / 32}, "six of six lost": {6, 0, true, 2. / 64},
		"as many gained": {6, 6, false, 1}, "better": {0, 12, false, 2. / 4096},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rows := "id\ttext\tlabel\n"
			for i := range test.lost + test.gained + 10 {
				thing, label := "car", "vehicle"
				if i < test.lost+test.gained { // now a fruit, before a vehicle
					thing = "apple"
				}
				if i >= test.lost && i < test.lost+test.gained {
					label = "fruit"
				}
				rows += fmt.Sprintf("%d\tthe %s\t%s\n", i, thing, label)
			}
			files := map[string]string{
				"p.hcl": pipelineOf("  expect \"e\" { rule = \"accuracy >= 0\" }\n"), "in.tsv": rows,
				"rows.tsv": "text\tlabel\napple\tfruit\ncar\tvehicle\n", "before.tsv": "text\tlabel\napple\tvehicle\ncar\tvehicle\n",
			}
			run := ran(t, files)
			r, err := expect.Test(t.Context(), folder(t, files), run)
			if err != nil {
				t.Fatal(err)
			}
			b := r.Baseline
			must.Equal(t, "worse, lost, gained, compared, left out", []any{test.worse, test.lost, test.gained, test.lost + test.gained + 10, 0}, []any{b.Worse, b.Paired.Lost, b.Paired.Gained, b.Paired.Items, b.Missing + b.Relabelled})
			must.Equal(t, "p, whether it holds, number of IDs, run", []any{test.chance, !test.worse, test.lost, run.ID()}, []any{b.Paired.Chance(), r.Holds(), len(b.Lost), b.Run}, cmpopts.EquateApprox(0, 1e-12))
		})
	}
}

// TestBaselineOfOtherRows: items that cannot be compared are counted. If the runs share no items, that is an
// error.
func TestBaselineOfOtherRows(t *testing.T) {
	files := map[string]string{
		"p.hcl":  pipelineOf("  expect \"e\" { rule = \"accuracy >= 0\" }\n"),
		"in.tsv": "id\ttext\tlabel\na\tred apple\tvehicle\nb\tblue car\tvehicle\n", "rows.tsv": known, "before.tsv": known,
	}
	run := ran(t, files)
	files["in.tsv"] = "id\ttext\tlabel\nb\tblue car\tvehicle\nc\tblue car\tvehicle\na\tred apple\tfruit\nd\tsome text\t\n"
	r, err := expect.Test(t.Context(), folder(t, files), run)
	if err != nil {
		t.Fatal(err)
	}
	if b := r.Baseline; b.Paired.Items != 1 || b.Missing != 1 || b.Relabelled != 1 || b.Worse {
		t.Errorf("%+v", b)
	}
	files["in.tsv"] = "id\ttext\tlabel\nx\tblue car\tvehicle\n"
	if _, err := expect.Test(t.Context(), folder(t, files), run); err == nil || !strings.Contains(err.Error(), "has none of the 1 items of ") {
		t.Errorf("got %v", err)
	}
}

// TestBaselineOfRepeatedIDs: if the run has fewer items with an id, as an interrupted run may, these items
// are not confused with each other.
func TestBaselineOfRepeatedIDs(t *testing.T) {
	files := map[string]string{
		"p.hcl":  pipelineOf("  expect \"e\" { rule = \"accuracy >= 0\" }\n"),
		"in.tsv": "id\ttext\tlabel\na\tblue car\tvehicle\nb\tblue car\tvehicle\n", "rows.tsv": known, "before.tsv": known,
	}
	run := ran(t, files)
	files["in.tsv"] = "id\ttext\tlabel\na\tred apple\tvehicle\na\tblue car\tvehicle\nb\tblue car\tvehicle\n"
	r, err := expect.Test(t.Context(), folder(t, files), run)
	if err != nil {
		t.Fatal(err)
	}
	if b := r.Baseline; b.Paired.Items != 1 || b.Missing != 2 || b.Paired.Lost > 0 {
		t.Errorf("%+v", b)
	}
}

// ran is a stored run of the pipeline with before.tsv as its knowledge.
func ran(t *testing.T, files map[string]string) *journal.Journal {
	t.Helper()
	p := folder(t, files, func(o *workspace.Options) {
		o.Journal, o.Vars = true, map[string]string{"known": filepath.Join(filepath.Dir(o.State), "before.tsv")}
	})
	for _, err := range p.Run(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := p.Workspace().Runs()
	id, _ := kept.Last()
	j, err := kept.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close(nil) })
	return j
}

// TestDecidedBaseline: a person's answers in the earlier run are not compared with the stages' present
// answers.
func TestDecidedBaseline(t *testing.T) {
	files := map[string]string{
		"p.hcl":  pipelineOf("  expect \"e\" { rule = \"accuracy >= 0\" }\n"),
		"in.tsv": "id\ttext\tlabel\na\tred apple\tvehicle\nb\tblue car\tvehicle\n", "rows.tsv": known, "before.tsv": known,
	}
	now := files["p.hcl"]
	files["p.hcl"] = strings.Replace(now, "source { path = var.known }", "source { path = var.known }\n  source {\n    path     = \"decided.jsonl\"\n    reviewed = true\n  }", 1)
	files["decided.jsonl"] = `{"text":"red apple","label":"vehicle"}` + "\n"
	run := ran(t, files)
	files["p.hcl"] = now
	r, err := expect.Test(t.Context(), folder(t, files), run)
	if err != nil {
		t.Fatal(err)
	}
	if b := r.Baseline; b.Paired.Items != 1 || b.Missing != 1 || b.Paired.Lost != 0 {
		t.Errorf("%+v", b)
	}
}

// TestFiguresOfSetsAndTrees: for sets, figures of a label count single labels, as racflow eval does. In a
// tree, a node stands for all labels below it.
func TestFiguresOfSetsAndTrees(t *testing.T) {
	const rule = `f1 + recall("fruit") + precision("fruit") >= 0`
	for name, test := range map[string]struct{ labels, rows, items, figures string }{
		"sets": {`labels = "many"`, "id\ttext\tlabel\nr1\tred apple\tfruit; red\nr2\tgreen pear\tfruit\nr3\tblue car\tvehicle\nr4\tfast train\tvehicle\n",
			"text\tlabel\na red apple\tred;fruit\ngreen pear\tfruit; ripe\nsome blue car\tvehicle\na fast train\tfruit\n", "2 of 3, 2 of 2"},
		"a tree": {`levels = "/"`, "id\ttext\tlabel\nr1\tred apple\tfruit/apple\nr2\tgreen pear\tfruit/pear\nr3\tblue car\tvehicle/car\nr4\tfast train\tvehicle/train\n",
			"text\tlabel\na red apple\tfruit/apple\ngreen pear\tfruit/apple\nsome blue car\tvehicle\na fast train\tfruit/pear\n", "2 of 3, 2 of 2"},
	} {
		text := strings.Replace(pipelineOf("  expect \"e\" {\n    rule = <<E\n"+rule+"\nE\n  }\n"), "source { path = var.known }", "source {\n    path = var.known\n    "+test.labels+"\n  }", 1)
		p := folder(t, map[string]string{"p.hcl": text, "rows.tsv": test.rows, "in.tsv": test.items})
		r, err := expect.Test(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		found, err := p.Evaluate(t.Context(), eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := r.Verdicts[0].Figures
		if got := fmt.Sprintf("%d of %d, %d of %d", f[1].Count, f[1].Of, f[2].Count, f[2].Of); got != test.figures {
			t.Errorf("%s: recall and precision are %s, want %s", name, got, test.figures)
		}
		if want := found.Rows[0].Report.MacroF1; f[0].Value != want || f[0].Interval.Low > want || f[0].Interval.High < want {
			t.Errorf("%s: f1 is %+v, racflow eval has %v", name, f[0], want)
		}
	}
}
