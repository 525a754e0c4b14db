package fewshot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

func TestLoad(t *testing.T) {
	type data struct {
		Text  string
		Names []string
	}
	samples := []any{data{}, data{Text: "a", Names: []string{"b", "c"}}}
	tests := []struct{ name, file, want, err string }{
		{name: "filled in", file: "{{.Text}}: {{join .Names \", \"}}\n", want: "a: b, c"},
		{name: "a byte order mark", file: "\ufeff{{.Text}}", want: "a"},
		{name: "an unknown field", file: "x\n{{range .Names}}{{$.Txt}}{{end}}", err: "names.tmpl:2:19: executing \"names.tmpl\" at <$.Txt>: can't evaluate field Txt in type fewshot.data; there are .Text, .Names"},
		{name: "not closed", file: "{{if .Text}}", err: "names.tmpl:1: unexpected EOF"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "names.tmpl")
			if err := os.WriteFile(path, []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			loaded, err := Load("template", sdk.Path(path), "", samples...)
			if test.err != "" {
				if err == nil || !strings.HasSuffix(err.Error(), test.err) {
					t.Fatalf("%v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := loaded.Write(samples[1]); err != nil || got != test.want {
				t.Errorf("%q, want %q (%v)", got, test.want, err)
			}
		})
	}
}
