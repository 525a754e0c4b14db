package doctor

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/sdk"
)

var sets = sdk.LabelForm{Many: true}

// setRows reads rows whose label is a set or a path.
func setRows(t *testing.T, name string, form sdk.LabelForm, textsAndLabels ...string) *Set {
	t.Helper()
	var b strings.Builder
	b.WriteString("text\tlabel\n")
	for i := 0; i < len(textsAndLabels); i += 2 {
		fmt.Fprintf(&b, "%s\t%s\n", textsAndLabels[i], textsAndLabels[i+1])
	}
	m := source.Mapping{ID: "id", Text: "text", Label: "label", Labels: source.Labels{LabelForm: form}, Fields: true}
	r, err := source.Open("-", source.Form{Format: source.TSV}, m, strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read(name, name+".tsv", r, m, 0, false, map[string]bool{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// votedSets returns 60 rows whose voters are right and sure, and the texts and labels of a set.
func votedSets() (rows []VotedRow, all []string) {
	labels := []string{"a", "b", "a; b", "b; c", "c", "a; c"}
	for i := range 60 {
		row := VotedRow{Text: fmt.Sprint("row ", i*i*7919), Label: labels[i%len(labels)], Votes: votes{}}
		for n, label := range []string{"a", "b", "c"} {
			row.Votes[label] = .01 + .002*float64((i+n)%5)
			if strings.Contains(row.Label, label) {
				row.Votes[label] = .98 + .002*float64((i+n)%5)
			}
		}
		rows = append(rows, row)
		all = append(all, row.Text, row.Label)
	}
	return rows, all
}

// TestSuspectSets: of a set, single labels are doubted, and the set without them is proposed.
func TestSuspectSets(t *testing.T) {
	rows, _ := votedSets()
	if found := Suspects(rows, sets); len(found) > 0 {
		t.Errorf("labels that are all right: %+v", found)
	}
	rows[2].Label = "a"    // b is missing
	rows[5].Label = "b; c" // a is missing, and b is wrong
	rows[9].Label = "b"    // it was "b; c"
	rows[12].Votes = votes{"a": .6, "b": .3, "c": .3}
	type named struct {
		row    int
		label  string
		doubts string
	}
	var got []named
	for _, s := range Suspects(rows, sets) {
		if s.Wrong < minWrong || s.Wrong > 1 {
			t.Errorf("%+v", s)
		}
		one := named{s.Row, s.Label, ""}
		for _, d := range s.Doubts {
			one.doubts += map[bool]string{true: "+", false: "-"}[d.Missing] + d.Label
		}
		got = append(got, one)
	}
	byRow := cmp.Transformer("byRow", func(all []named) map[int]named {
		rows := map[int]named{}
		for _, one := range all {
			rows[one.row] = one
		}
		return rows
	})
	want := []named{{2, "a; b", "+b"}, {5, "a; c", "-b+a"}, {9, "b; c", "+c"}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(named{}), byRow); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestSets: each check counts single labels, names those that differ, and the proposal has sets.
func TestSets(t *testing.T) {
	rows, texts := votedSets()
	rows[2].Label, texts[5] = "a", "a" // b is missing
	s := setRows(t, "k", sets, append(texts, "the same", "a; b", "The same", "b; c", "spelt so", "A; b", "rare", "a; d")...)
	input := setRows(t, "the input", sets, "x", "a; new", "y", "b")
	r, err := Look(context.Background(), Options{Knowledge: []Source{{Set: s, Votes: func(context.Context) ([]VotedRow, error) { return rows, nil }}}, Input: input})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"error spelling 1: 64->a; b", "error contradiction 2: 62 63", "warning few 2: 64 65", "warning suspect 1: 4->a; b", "info unknown 1: 2"}
	got := lines(r)
	for i := range want {
		if !strings.Contains(strings.Join(got, "\n"), want[i]) {
			t.Errorf("no %q in:\n%s", want[i], strings.Join(got, "\n"))
		}
	}
	for _, f := range r.Findings {
		if f.Check == "contradiction" && f.Rows[1].Note != `differs in "a", "c"` {
			t.Errorf("the contradiction says %q", f.Rows[1].Note)
		}
	}
	for _, d := range Doubts(s) {
		switch s.Rows[d.Row].Text {
		case rows[2].Text:
			if !cmp.Equal(d.Labels, []string{"b"}) || !strings.Contains(d.Why[0], `"b" is rather missing (0.99`) {
				t.Errorf("a doubted set: %+v", d)
			}
		case "the same":
			if !cmp.Equal(d.Labels, []string{"c"}) || !strings.HasSuffix(d.Why[0], `"b; c" in k.tsv:63, which differs in "a", "c"`) {
				t.Errorf("a contradiction: %+v", d)
			}
		}
	}
	var fixed bytes.Buffer
	if err := Propose(s).Write(&fixed, source.TSV); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"spelt so\ta; b\trelabel\tA; b\tanother spelling is commoner\n", rows[2].Text + "\ta; b\trelabel\ta\tvoters that have not seen it: \"b\" is rather missing"} {
		if !strings.Contains(fixed.String(), line) {
			t.Errorf("no %q in:\n%s", line, fixed.String())
		}
	}
}

// TestTrees: a label beside the doubted one is a smaller error, and the input may expect a node above.
func TestTrees(t *testing.T) {
	tree := sdk.LabelForm{Levels: "/"}
	s := setRows(t, "k", tree, "one", "a/x", "two", "b/z", "three", "a/y")
	s.suspected = []suspect{{Suspect{Label: "a/y", Wrong: .9}, 0}, {Suspect{Label: "a/y", Wrong: .9}, 1}}
	var got []Severity
	for _, d := range Doubts(s) {
		got = append(got, d.Severity)
	}
	if d := cmp.Diff([]Severity{Info, Warning}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	r, err := Look(context.Background(), Options{Knowledge: []Source{{Set: s}}, Input: setRows(t, "the input", tree, "x", "a", "y", "b/z")})
	if err != nil || strings.Contains(strings.Join(lines(r), "\n"), "unknown") {
		t.Errorf("%q, %v", lines(r), err)
	}
}
