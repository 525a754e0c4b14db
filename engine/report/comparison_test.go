package report

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/interval"
)

// A column says of each voter over the network how many of its answers were acceptable; a
// variant without the voter has a dash there.
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

// Rows that are equal because the election has the weight 0 for a voter say so, where a target may be
// about it.
func TestComparisonOfNoWeight(t *testing.T) {
	knn, linear := eval.Voter{Name: "knn", Weight: new(0.)}, eval.Voter{Name: "linear", Weight: new(3.5)}
	rows := []eval.Row{{Set: []string{"3"}, Report: eval.Report{Voters: []eval.Voter{knn, linear}}}, {Set: []string{"9"}, Report: eval.Report{Voters: []eval.Voter{knn, linear}}}}
	for target, says := range map[string]bool{"sample.knn.k": true, "knn.k": true, "var.k": true, "linear.k": false, "retrieve.near.top_k": false} {
		var out strings.Builder
		if err := Comparison(&out, eval.Comparison{Targets: []string{target}, Rows: rows}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "the weight 0 for knn in 2 of 2 rows"); got != says || strings.Contains(out.String(), "for linear") {
			t.Errorf("%s:\n%s", target, out.String())
		}
	}
}

// What a table has no room for is left out: first the calibration, then the interval. A
// voter that is better than the election by more than chance is named.
func TestComparisonFits(t *testing.T) {
	voter := eval.Voter{Name: "knn", Asked: 100, Alone: interval.Paired{Items: 100, Lost: 2, Gained: 20}}
	lucky := eval.Voter{Name: "lucky", Alone: interval.Paired{Items: 100, Lost: 2, Gained: 4}}
	row := eval.Report{
		Scored: 100, Accuracy: .7, AccuracyInterval: interval.Wilson(70, 100), MacroF1: .6,
		Calibration: &eval.Calibration{ECE: .125}, Voters: []eval.Voter{voter, lucky},
	}
	tests := []struct {
		name   string
		target string
		want   string
	}{
		{"room for all", "k", "k  ACCURACY  95 % INTERVAL  MACRO-F1  ECE\n1  0.7000    0.6042-0.7811  0.6000    0.1250\n"},
		{"without the calibration", strings.Repeat("k", 60), "ACCURACY  95 % INTERVAL  MACRO-F1\n"},
		{"without both", strings.Repeat("k", 75), "ACCURACY  MACRO-F1\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			if err := Comparison(&out, eval.Comparison{Targets: []string{test.target}, Rows: []eval.Row{{Set: []string{"1"}, Report: row}}}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), test.want) {
				t.Errorf("got\n%s\nwant\n%s", out.String(), test.want)
			}
			for line := range strings.Lines(out.String()) {
				if len(line) > tableWidth+1 {
					t.Errorf("a line of %d columns: %s", len(line), line)
				}
			}
			warning := "\nwarning: with 1: knn alone is right on 18.0 points more than the election [9.9, 27.3]\n"
			if _, after, ok := strings.Cut(out.String(), warning); !ok || after != "" {
				t.Errorf("got\n%s\nwant at its end%s", out.String(), warning)
			}
		})
	}
}
