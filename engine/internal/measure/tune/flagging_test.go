package tune

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/result"
)

// results returns answers with falling agreement, the last of them wrong.
func results(n, wrong int) []outcome.Result {
	all := make([]outcome.Result, n)
	for i := range all {
		all[i] = outcome.Result{Text: fmt.Sprint(i), Expected: "a", Answer: "a", Verdict: result.Verdict{Agreement: 1 - float64(i)/float64(n)}}
		if i >= n-wrong {
			all[i].Answer = "b"
		}
	}
	return all
}

var goal = eval.PromiseGoal{Accuracy: .9, Confidence: .95}

func TestPromise(t *testing.T) {
	rows := results(100, 30)
	surer := results(100, 30)
	for i := range surer { // only the confidence is informative, not the agreement
		surer[i].Confidence, surer[i].Agreement = surer[i].Agreement, .5
	}
	failed := append(results(100, 30), outcome.Result{Text: "failed", Expected: "a", Failure: &outcome.Failure{Err: errors.New("no")}},
		outcome.Result{Text: "provisional", Expected: "a", Answer: "b", Verdict: result.Verdict{Agreement: 1}, Missing: []*outcome.Failure{{Stage: "sample.llm"}}})
	outside := append(results(100, 30), outcome.Result{Text: "x", Expected: "z", Verdict: result.Verdict{Agreement: .9}}, outcome.Result{Text: "y", Expected: "z", Answer: "a", Verdict: result.Verdict{Agreement: .305}})
	tests := map[string]struct {
		rule    FlagRule
		results []outcome.Result
		want    string
		value   float64
	}{
		"agreement":     {FlagRule{"x", "agreement", false}, rows, "72 % are answered, at least 90 % of them right, with 95 % confidence\nfound on 100 rows: 72 are answered without a flag, 70 of them right (97.2 %)\nguaranteed for texts like these rows that belong to one of the labels: no row is out of scope\n", .285},
		"or equal":      {FlagRule{"x", "agreement", true}, rows, "72 % are answered", .285},
		"none given":    {FlagRule{"x", "confidence", false}, rows, "72 % are answered", .285},
		"confidence":    {FlagRule{"x", "confidence", false}, surer, "72 % are answered", .285},
		"failures":      {FlagRule{"x", "agreement", false}, failed, "found on 100 rows: 72 are", .285},
		"out of scope":  {FlagRule{"x", "agreement", false}, outside, "out of scope: at least 1.2 % are flagged or left without an answer, with 95 % confidence; 1 of 2 were\nguaranteed for texts like these rows, while at most 1.9 % of them are out of scope\n", .295},
		"another share": {FlagRule{"x", "agreement", false}, results(100, 0), "100 % are answered", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := test.rule.Promise(test.results, []string{"a", "b"}, goal)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(f.String(), test.want) || f.Threshold() != test.value {
				t.Errorf("%s\nthreshold %v; want\n%s\nthreshold %v", f, f.Threshold(), test.want, test.value)
			}
		})
	}
}

// TestFlaggingNote: the note has everything that a promise needs.
func TestFlaggingNote(t *testing.T) {
	f, err := FlagRule{"flag_below", "agreement", false}.Promise(results(100, 30), nil, goal)
	if err != nil {
		t.Fatal(err)
	}
	f.Split, f.Outside, f.Missed, f.Caught = true, 10, 1, .654321
	file := filepath.Join(t.TempDir(), "tuned.hclvars")
	if err := os.WriteFile(file, []byte("# Written by hand\n"+f.Note()), 0o600); err != nil {
		t.Fatal(err)
	}
	want := `# 72 % are answered, at least 90 % of them right, with 95 % confidence
# found on 100 rows that no other value was found on: 72 are answered without a flag, 70 of them right (97.2 %)
# out of scope: at least 65.4 % are flagged or left without an answer, with 95 % confidence; 9 of 10 were
# guaranteed for texts like these rows, while at most 10 % of them are out of scope
# promise 0.9 0.95 0.6543 flag_below 0.285 0.1
flag_below = 0.285
`
	if d := cmp.Diff(want, f.Note()); d != "" {
		t.Error(d)
	}
	n, ok, err := ReadPromise(file)
	if want := (NotedPromise{goal, .6543, "flag_below", .285, .1}); err != nil || !ok || n != want {
		t.Errorf("%+v %v %v, want %+v", n, ok, err, want)
	}
	for _, text := range []string{"", "flag_below = 0.4\n", "# promise of another kind\n", "# promise 0.9 0.95 0 flag_below 0.2\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, ok, err := ReadPromise(file); ok || err != nil {
			t.Errorf("%q states %+v, %v", text, n, err)
		}
	}
}

// TestReserved: about half of the rows are reserved, for any texts.
func TestReserved(t *testing.T) {
	for _, format := range []string{"%d", "row %d", "%08b", "%d is a longer text than the others"} {
		n := 0
		for i := range 2000 {
			if ReservedForPromise(fmt.Sprintf(format, i)) {
				n++
			}
		}
		if n < 900 || n > 1100 {
			t.Errorf("%s: %d of 2000 are reserved", format, n)
		}
	}
}
