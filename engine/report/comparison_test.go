package report

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/eval"
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
		"k ACCURACY MACRO-F1 ACCEPTABLE BY small ACCEPTABLE BY large",
		"4 0.0000 0.0000 66.7 % of 30 -",
		"19 0.0000 0.0000 66.7 % of 30 100.0 % of 12",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
