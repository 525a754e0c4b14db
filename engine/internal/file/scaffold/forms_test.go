package scaffold

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// Rows are recognised in every format, and yield a pipeline file.
func TestForms(t *testing.T) {
	var objects []string
	for line := range strings.Lines(tickets("\t", "text", "label", 12)) {
		if text, label, _ := strings.Cut(strings.TrimSpace(line), "\t"); text != "text" {
			objects = append(objects, `{"data": {"text": "`+text+`"}, "label": "`+label+`"}`)
		}
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(tickets(",", "text", "label", 12)))
	_ = w.Close()
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(tickets("\t", "text", "label", 12))
	if err != nil {
		t.Fatal(err)
	}
	latin, err := charmap.Windows1252.NewEncoder().String(strings.ReplaceAll(tickets(";", "text", "label", 12), "house", "café"))
	if err != nil {
		t.Fatal(err)
	}
	_, headless, _ := strings.Cut(tickets("\t", "text", "label", 12), "\n")
	for name, test := range map[string]struct{ content, text, label, header string }{
		"a.tsv":       {tickets("\t", "text", "label", 12), "text", "label", ""},
		"a.csv":       {tickets(";", "text", "label", 12), "text", "label", ""},
		"utf16.tsv":   {utf16, "text", "label", ""},
		"latin.csv":   {latin, "text", "label", ""},
		"a.jsonl":     {strings.Join(objects, "\n"), "data.text", "label", ""},
		"a.json":      {`{"n": 1, "rows": [` + strings.Join(objects, ",\n") + "]}", "data.text", "label", ""},
		"a.csv.gz":    {packed.String(), "text", "label", ""},
		"a.txt":       {tickets("\t", "text", "label", 12), "text", "label", ""},
		"no-head.tsv": {headless, "1", "2", "false"},
		"no-head.csv": {strings.ReplaceAll(headless, "\t", ","), "1", "2", "false"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, map[string]string{name: test.content})
			d, p, err := look(t, "pipeline.hcl", nil, name)
			if err != nil {
				t.Fatal(err)
			}
			if r := d.Rows[0]; r.Count != 12 || r.Invalid != 0 || len(r.Labels) != 2 {
				t.Errorf("%d rows, %d invalid, labels %v", r.Count, r.Invalid, r.Labels)
			}
			if got := [3]string{argument(t, p.File, "text", known...), argument(t, p.File, "label", known...), argument(t, p.File, "header", input...)}; got != [3]string{test.text, test.label, test.header} {
				t.Errorf("the columns are %q, and header", got)
			}
		})
	}
	write(t, map[string]string{"prose.txt": english + "\n" + english + "\n\n" + english + "\n" + english})
	if d, _, err := look(t, "pipeline.hcl", nil, "prose.txt"); err != nil || d.Documents == nil {
		t.Errorf("a text of prose is %+v, %v", d, err)
	}
}
