package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/measure/eval"
)

// Each voter over the network has a column with the share of its acceptable answers. A variant
// without the voter has a dash there.
func TestAcceptable(t *testing.T) {
	knn := eval.Voter{Name: "knn", Answers: 9, Acceptable: 1}
	small := eval.Voter{Name: "small", Answers: 30, Acceptable: 2. / 3, Network: true}
	large := eval.Voter{Name: "large", Answers: 12, Acceptable: 1, Network: true}
	row := func(value string, voters ...eval.Voter) eval.Row {
		return eval.Row{Set: []string{value}, Report: eval.Report{Scored: 1, Voters: voters}}
	}
	var out strings.Builder
	if err := Comparison(&out, eval.Comparison{Targets: []string{"k"}, Rows: []eval.Row{row("4", knn, small), row("19", knn, small, large)}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"k ACCURACY 95 % INTERVAL MACRO-F1 ACCEPTABLE BY small ACCEPTABLE BY large",
		"4 0.0000 0.0000-0.0000 0.0000 66.7 % of 30 -",
		"19 0.0000 0.0000-0.0000 0.0000 66.7 % of 30 100.0 % of 12",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A voter that is better than the election by more than chance is named.
func TestComparisonWarns(t *testing.T) {
	voter := eval.Voter{Name: "knn", Asked: 100, Alone: eval.Paired{Items: 100, Lost: 2, Gained: 20}}
	lucky := eval.Voter{Name: "lucky", Alone: eval.Paired{Items: 100, Lost: 2, Gained: 4}}
	row := eval.Report{
		Scored: 100, Accuracy: .7, AccuracyInterval: eval.Wilson(70, 100), MacroF1: .6,
		Calibration: &eval.Calibration{ECE: .125}, Voters: []eval.Voter{voter, lucky},
	}
	var out strings.Builder
	if err := Comparison(&out, eval.Comparison{Targets: []string{"k"}, Rows: []eval.Row{{Set: []string{"1"}, Report: row}}}); err != nil {
		t.Fatal(err)
	}
	const want = "k  ACCURACY  95 % INTERVAL  MACRO-F1  ECE\n1  0.7000    0.6042-0.7811  0.6000    0.1250\n" +
		"warning: with 1: knn alone is right on 18.0 points more than the election [9.9, 27.3]\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestEval: everything about answers, their confidence and their voters, in lines of at most 100
// columns.
func TestEval(t *testing.T) {
	r := eval.Report{
		Items: 2000, Scored: 2000, Flagged: 148, Accuracy: .8845, AccuracyInterval: eval.Wilson(1769, 2000), MacroF1: .88, Agreement: .7,
		Flags: eval.Flags{Errors: 231, Caught: 72, Flagged: 148, Right: 76},
		Calibration: &eval.Calibration{
			Measured: "agreement", ECE: .1074, Chance: .0213, NLL: .3012, Brier: .0901,
			Coverage: []eval.Coverage{{Share: .5, Accuracy: .999, Confidence: .93}, {Share: .95, Accuracy: .91, Confidence: .4}, {Share: 1, Accuracy: .8845}},
		},
		Voters: []eval.Voter{
			{Name: "neighbours", Asked: 2000, Weight: new(3.8641), Leads: true, Accuracy: .9055, AccuracyInterval: eval.Wilson(1811, 2000), Accepted: 1, Answers: 9000, Acceptable: 1,
				Alone: eval.Paired{Items: 2000, Lost: 30, Gained: 72}, Adds: &eval.Paired{Items: 2000, Lost: 10, Gained: 60}},
			{Name: "prototype", Asked: 2000, Weight: new(0.), Accuracy: .8865, AccuracyInterval: eval.Wilson(1773, 2000), Accepted: 1, Answers: 9000, Acceptable: 1,
				Alone: eval.Paired{Items: 2000, Lost: 40, Gained: 44}, Adds: &eval.Paired{Items: 2000, Lost: 60, Gained: 30}},
			{Name: "llm", Asked: 100, Accuracy: .8, AccuracyInterval: eval.Wilson(80, 100), Accepted: .95, Answers: 3000, Acceptable: .9, Network: true,
				Alone: eval.Paired{Items: 100, Lost: 10, Gained: 31}},
		},
		Labels: []eval.Label{{Label: "a", Support: 2000, Answered: 2000, Precision: .8845, Recall: .8845, F1: .8845}},
	}
	var out strings.Builder
	if err := Eval(&out, r); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(evaluation, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 101 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
}

const evaluation = `items      2000    148 flagged  
accuracy   0.8845  of 2000 items with an expected label; 95 % interval 0.8697 to 0.8978
macro-F1   0.8800  over 1 labels
agreement  0.7000  mean share of the votes for the answer
ECE        0.1074  of the agreement; perfectly calibrated ones have up to 0.0213 by chance
NLL        0.3012  of whether the answer is right; Brier score 0.0901
flags      72      of 231 errors caught; 76 of 148 flagged items are false alarms
items/s    0.0
latency    0.0 ms  median; 0.0 ms at the 99th percentile (a batch answers together)

SUREST          50 %    95 %    100 %
accuracy        0.9990  0.9100  0.8845
agreement from  0.9300  0.4000  0.0000

VOTER       ASKED         ACCURACY ALONE  95 % INTERVAL     ANSWERED  ACCEPTABLE       WEIGHT
neighbours  2000 of 2000  0.9055          0.8919 to 0.9176  100.0 %   100.0 % of 9000  3.864, leads
prototype   2000 of 2000  0.8865          0.8719 to 0.8997  100.0 %   100.0 % of 9000  0.000
llm         100 of 2000   0.8000          0.7112 to 0.8666  95.0 %    90.0 % of 3000

POINTS [95 %]  ALONE, AGAINST THE ELECTION  WHAT IT ADDS TO THE ELECTION
neighbours     +2.1 [1.1, 3.1]              +2.5 [1.7, 3.4]
prototype      +0.2 [-0.7, 1.1]             -1.5 [-2.5, -0.6]
llm            +21.0 [8.8, 32.8]            -
figures of a voter are of the items that it was asked about
warning: neighbours alone is right on 2.1 points more than the election [1.1, 3.1]
prototype alone is right on 0.2 points more than the election [-0.7, 1.1], which may be chance
warning: llm alone is right on 21.0 points more than the election [8.8, 32.8] on 100 of 2000 items
warning: the election would be better without prototype

STAGE  ITEMS  BUSY (s)

LABEL (worst first)  F1     PRECISION  RECALL  ITEMS
a                    0.884  0.884      0.884   2000
`
