package doctor

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/source"
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

// TestSets: each check counts single labels and names labels that differ; the proposal has sets.
func TestSets(t *testing.T) {
	var texts []string
	for i := range 60 {
		texts = append(texts, fmt.Sprint("row ", i*i*7919), []string{"a", "b", "a; b", "b; c", "c", "a; c"}[i%6])
	}
	s := setRows(t, "k", sets, append(texts, "the same", "a; b", "The same", "b; c", "spelt so", "A; b", "rare", "a; d")...)
	input := setRows(t, "the input", sets, "x", "a; new", "y", "b")
	r, err := Look(t.Context(), Options{Knowledge: []Source{{Set: s}}, Input: input})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"error spelling 1: 64->a; b", "error contradiction 2: 62 63", "warning few 2: 64 65", "info unknown 1: 2"}
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
		if s.Rows[d.Row].Text == "the same" {
			if !cmp.Equal(d.Labels, []string{"c"}) || !strings.HasSuffix(d.Why[0], `"b; c" in k.tsv:63, which differs in "a", "c"`) {
				t.Errorf("a contradiction: %+v", d)
			}
		}
	}
	var fixed bytes.Buffer
	if err := Propose(s).Write(&fixed, source.TSV); err != nil {
		t.Fatal(err)
	}
	if line := "spelt so\ta; b\trelabel\tA; b\tthe label is spelt \"a\" in more rows\n"; !strings.Contains(fixed.String(), line) {
		t.Errorf("no %q in:\n%s", line, fixed.String())
	}
}

// TestTrees: the input may expect a node above the labels.
func TestTrees(t *testing.T) {
	tree := sdk.LabelForm{Levels: "/"}
	s := setRows(t, "k", tree, "one", "a/x", "two", "b/z", "three", "a/y")
	r, err := Look(context.Background(), Options{Knowledge: []Source{{Set: s}}, Input: setRows(t, "the input", tree, "x", "a", "y", "b/z")})
	if err != nil || strings.Contains(strings.Join(lines(r), "\n"), "unknown") {
		t.Errorf("%q, %v", lines(r), err)
	}
}
