package source_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

func TestLabels(t *testing.T) {
	set := source.Labels{LabelForm: sdk.LabelForm{Many: true}}
	bars := source.Labels{LabelForm: sdk.LabelForm{Many: true}, Separator: "|"}
	tree := source.Labels{LabelForm: sdk.LabelForm{Levels: "/"}, Columns: []string{"top", "leaf"}}
	for _, c := range []struct {
		name, file, content string
		labels              source.Labels
		want                string // labels by row
		fails               string // a part of the error of the row or file
	}{
		{"one label", "a.tsv", "text\tlabel\nx\tb;a\n", source.Labels{}, "b;a", ""},
		{"blanks and invisible characters around it", "a.csv", "text,label\nx, b\u00a0\ny,\u200bRu\u0308ck a\ufeff\nz,\u200b\n", source.Labels{}, "b,Rück a,", ""},
		{"those of a set", "a.jsonl", `{"text": "x", "label": [" b", "a\u200b", "a"]}`, set, "a; b", ""},
		{"those of levels", "a.tsv", "text\ttop\tleaf\nx\ta\u00a0\tu\u0308\n", tree, "a/ü", ""},
		{"a text", "a.tsv", "text\tlabel\nx\t b ; a;;b\ny\t\nz\t[]\n", set, "a; b,,[]", ""},
		{"another separator", "a.csv", "text,label\nx,b|a;c\n", bars, "a;c; b", ""},
		{"a list", "a.jsonl", `{"text": "x", "label": ["b", "a;c", 3]}` + "\n" + `{"text": "y", "label": []}` + "\n" + `{"text": "z", "label": null}`, set, "3; a;c; b,[],", ""},
		{"an empty list of one", "a.jsonl", `{"text": "y", "label": []}`, source.Labels{}, "", ""},
		{"a text in JSON", "a.jsonl", `{"text": "x", "label": "b;a"}`, set, "a; b", ""},
		{"a list of one", "a.jsonl", `{"text": "x", "label": ["b"]}`, source.Labels{}, "b", ""},
		{"a list of several", "a.jsonl", `{"text": "x", "label": ["b", "a"]}`, source.Labels{}, "", `write labels = "many"`},
		{"a list of objects", "a.jsonl", `{"text": "x", "label": [{}]}`, set, "", "is not a string"},
		{"what stands between labels", "a.csv", "text,label\nx,b|a; c\n", bars, "", `the label "a; c" contains "; "`},
		{"levels", "a.tsv", "text\ttop\tleaf\nx\ta \tb\ny\ta\t\nz\t\t\n", tree, "a/b,a,", ""},
		{"levels in JSON", "a.jsonl", `{"text": "x", "top": "a", "leaf": 3}`, tree, "a/3", ""},
		{"a gap", "a.tsv", "text\ttop\tleaf\nx\t\tb\n", tree, "", `"top" is empty`},
		{"a separator in a level", "a.tsv", "text\ttop\tleaf\nx\ta/b\tc\n", tree, "", `"a/b" contains "/"`},
		{"no such level", "a.tsv", "text\ttop\nx\ta\n", tree, "", `there is no column "leaf", which level_columns names`},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := source.Open(path, source.Form{}, source.Mapping{Text: "text", Label: "label", Labels: c.labels}, nil)
			if err != nil {
				if c.fails == "" || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("got %v, want %q", err, c.fails)
				}
				return
			}
			defer r.Close() //nolint:errcheck // it was only read
			var all []string
			for row, err := r.Next(); err == nil; row, err = r.Next() {
				if row.Err != nil {
					if c.fails == "" || !strings.Contains(row.Err.Error(), c.fails) {
						t.Errorf("got %v, want %q", row.Err, c.fails)
					}
					return
				}
				all = append(all, row.Label)
				for name := range row.Meta {
					if name == "top" || name == "leaf" {
						t.Errorf("the level %s is metadata, too", name)
					}
				}
			}
			if got := strings.Join(all, ","); got != c.want || c.fails != "" {
				t.Errorf("got %q, want %q%s", got, c.want, c.fails)
			}
		})
	}
}

// TestLabelsWrittenOtherwise: a reader reports labels that it reads in another spelling.
func TestLabelsWrittenOtherwise(t *testing.T) {
	for content, want := range map[string]string{
		"text,label\nx,a\ny,b\n":                  "",
		"text,label\nx,a\ny,b\u00a0\nz, c\n,d \n": `written otherwise: 2, the first on line 3: "b\u00a0"`,
	} {
		r, err := source.Open("-", source.Form{Format: source.CSV}, source.Mapping{Text: "text", Label: "label"}, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		for _, err = r.Next(); err == nil; _, err = r.Next() {
		}
		if got := strings.Join(r.Notes(), "\n"); !strings.HasSuffix(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: got %q, want %q", content, got, want)
		}
	}
}
