package generation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// table returns a knowledge of rows with the labels a, b and old, and with a table of this name.
func table(t *testing.T, name, content string) *pipeline.Knowledge {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	must.Do(t, os.WriteFile(path, []byte(content), 0o600))
	rows := filepath.Join(dir, "rows.tsv")
	must.Do(t, os.WriteFile(rows, []byte("text\tlabel\none\ta\ntwo\tb\nthree\told\n"), 0o600))
	return &pipeline.Knowledge{Name: "k", Sources: []pipeline.Source{
		{Path: rows, Form: source.Form{Format: source.FormatOf(rows)}, Text: "text", Label: "label"},
		{
			Path: path, Form: source.Form{Format: source.FormatOf(path)}, Text: "label", Meta: []string{},
			Describes: &pipeline.DescribedColumns{Name: "name", Description: "description", Examples: "examples", Becomes: "becomes"},
		},
	}}
}

func TestTable(t *testing.T) {
	for name, content := range map[string]string{
		"labels.tsv": "label\tname\tdescription\texamples\tbecomes\towner\n" +
			"a\tThe first\tWhat comes first.\t\t\tAna\nnew\t\tWhat is new.\t\t\t\nshown\t\t\tfour | five\t\t\nold\t\t\t\tb\t\n",
		"labels.jsonl": `{"label":"a","name":"The first","description":"What comes first.","owner":"Ana"}` + "\n" +
			`{"label":"new","description":"What is new."}` + "\n" + `{"label":"shown","examples":["four","five"]}` + "\n" + `{"label":"old","becomes":"b"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ReadSource(t.Context(), table(t, name, content), nil)
			must.Do(t, err)
			var got []string
			for _, u := range s.Units {
				got = append(got, fmt.Sprint(u.Text, " = ", u.Label, " ", u.Meta["owner"], " ", IsDescription(u, s.Described)))
			}
			want := []string{
				"one = a <nil> false", "two = b <nil> false", "three = b <nil> false", "What comes first. = a Ana true",
				"What is new. = new <nil> true", "four = shown <nil> false", "five = shown <nil> false",
			}
			if d := cmp.Diff(want, got); d != "" || len(s.Invalid) > 0 {
				t.Errorf("units (-want +got):\n%s\ninvalid: %v", d, s.Invalid)
			}
			described := map[string]sdk.Described{"a": {Name: "The first", Text: "What comes first."}, "new": {Text: "What is new.", Alone: true}}
			if d := cmp.Diff(described, s.Described); d != "" {
				t.Errorf("described (-want +got):\n%s", d)
			}
		})
	}
}

// A renamed row keeps its id, and its entry is made again.
func TestRenamed(t *testing.T) {
	before, err := ReadSource(t.Context(), table(t, "labels.tsv", "label\tname\na\tA\n"), nil)
	must.Do(t, err)
	after, err := ReadSource(t.Context(), table(t, "labels.tsv", "label\tbecomes\na\tb\n"), nil)
	must.Do(t, err)
	for i, u := range after.Units {
		same := u.ID == before.Units[i].ID && slices.Equal(u.Hash, before.Units[i].Hash)
		if u.ID != before.Units[i].ID || same != (i > 0) {
			t.Errorf("unit %d: %+v, before %+v", i, u, before.Units[i])
		}
	}
	if before.Digest == after.Digest {
		t.Error("the digest of the sources does not depend on the table")
	}
}

func TestTableMistakes(t *testing.T) {
	for lines, want := range map[string]string{
		"\t\tx\t":                 "2: it has no label",
		"a\t\tx\t\na\t\ty\t":      `3: line 2 describes the label "a" already`,
		"a\t\t\ta":                "2: its label becomes itself",
		"a\t\t\tb\nb\t\t\ta":      `2: "a" and "b" become each other`,
		"a\t\t\tb\nb\t\t\tc":      `2: its label becomes "b", which becomes "c" itself: write "c" here, too`,
		"a\t\tfirst\tb":           `2: its label becomes "b": name and describe that label, on a line of its own`,
		"odl\t\t\tb":              `2: no row has the label "odl", and the line neither describes it nor has an example: correct the label, or remove the line. Did you mean "old"?`,
		"c\tnamed alone\t\t\na\t": "3: it has 2 fields where the header has 4",
	} {
		s, err := ReadSource(t.Context(), table(t, "labels.tsv", "label\tname\tdescription\tbecomes\n"+lines+"\n"), nil)
		must.Do(t, err)
		if !slices.ContainsFunc(s.Invalid, func(r InvalidRow) bool { return strings.Contains(r.String(), "labels.tsv:"+want) }) {
			t.Errorf("%q: %v, want %q", lines, s.Invalid, want)
		}
	}
	_, err := ReadSource(t.Context(), table(t, "labels.tsv", "intent\tdescription\na\tx\n"), nil)
	if want := `there is no column "label"; the columns are "intent", "description". Name the one that has the labels: label = "NAME"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// A description counts as two rows, and a label without rows has its description as the centroid.
func TestDescriptions(t *testing.T) {
	d, sums := Descriptions{Of: map[string]sdk.Described{"a": {Text: "x", Name: "n", Alone: true}, "b": {Text: "y"}}}, LabelSums{}
	for _, e := range []sdk.Entry{
		{ID: descriptionID("a"), Label: "a", Vector: []float32{0, 1}}, {ID: descriptionID("b"), Label: "b", Vector: []float32{0, 1}},
		{ID: "1", Label: "b", Vector: []float32{1, 0}}, {ID: "2", Label: "b", Vector: []float32{1, 0}},
	} {
		if !d.Take(e) {
			sums.Add(e.Label, e.Vector)
		}
	}
	d.AddTo(sums)
	centroids := d.Mark(sums.Entries())
	is, weight, ok := Marked(centroids[0])
	if len(centroids) != 2 || !ok || weight != 2 || is != (sdk.Described{Name: "n", Text: "x", Alone: true}) {
		t.Errorf("%d centroids, the first says %+v, weight %v", len(centroids), is, weight)
	}
	if a, b := centroids[0].Vector, centroids[1].Vector; a[0] != 0 || a[1] != 1 || b[0] != b[1] {
		t.Errorf("centroids %v and %v", a, b)
	}
}
