package fewshot

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

type bombed struct {
	Text  string
	Names []string
}

// TestBombs writes prompts with templates that would take unlimited time or memory. Each ends with an error that
// names the exceeded bound.
func TestBombs(t *testing.T) {
	data := bombed{Text: strings.Repeat("<a \"word\">\\", 100), Names: make([]string, 60)}
	doubling := func(how string) string {
		return "{{$a := .Text}}" + strings.Repeat("{{$a = "+how+"}}", 40) + "{{$a}}"
	}
	nested := func(depth int, head, body string) string {
		return strings.Repeat("{{range "+head+"}}", depth) + body + strings.Repeat("{{end}}", depth)
	}
	for name, test := range map[string]struct{ template, want string }{
		"a loop over numbers":      {"{{range 1000000000}}{{end}}", "t.tmpl:1:"},
		"that writes":              {"\n{{range 1000000000}}x{{end}}", "go round at most"},
		"loops in loops":           {nested(8, "$.Names", "x"), "go round at most"},
		"in conditions":            {"{{if .Text}}{{with .Text}}" + nested(8, "$.Names", "") + "{{end}}{{end}}", "go round at most"},
		"in what is else":          {"{{range slice .Names 0 0}}{{else}}{{range 1000000000}}{{end}}{{end}}", "go round at most"},
		"a template calls itself":  {"{{define \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}", "call each other more than 30 deep"},
		"from within a loop":       {"{{define \"a\"}}{{range 1}}{{template \"a\"}}{{end}}{{end}}{{template \"a\"}}", "call each other more than 30 deep"},
		"many loops in loops":      {nested(10000, "$.Names", ""), "t.tmpl:1:"},
		"in alternatives":          {strings.Repeat("{{if .Text}}{{else}}{{range $.Names}}", 5000) + strings.Repeat("{{end}}{{end}}", 5000), "more than 30 loops stand in each other"},
		"templates call templates": {"{{define \"a\"}}{{range 1000}}{{template \"b\"}}{{end}}{{end}}{{define \"b\"}}{{range 1000}}{{template \"c\"}}{{end}}{{end}}{{define \"c\"}}{{range 1000}}x{{end}}{{end}}{{template \"a\"}}", "go round at most"},
		"long":                     {"{{range 20000}}{{$.Text}}{{end}}", "at most 16 MiB"},
		"printf":                   {doubling(`printf "%s%[1]s" $a`), "at most 16 MiB"},
		"printf that is wide":      {`{{printf "` + strings.Repeat("%1000000d", 20) + `" 1}}`, "at most 16 MiB"},
		"printf that is told so":   {`{{printf "` + strings.Repeat("%[1]*[1]d", 20) + `" 1000000}}`, "at most 16 MiB"},
		"print":                    {doubling("print $a $a"), "at most 16 MiB"},
		"println":                  {doubling("println $a $a"), "at most 16 MiB"},
		"join":                     {doubling("join $.Names $a"), "at most 16 MiB"},
		"js":                       {doubling("js $a"), "at most 16 MiB"},
		"html":                     {doubling("html $a $a"), "at most 16 MiB"},
		"urlquery":                 {doubling("urlquery $a $a"), "at most 16 MiB"},
		"the functions that count": {"{{__tick \"\"}}", "function \"__tick\" not defined"},
		"a long file":              {strings.Repeat("x", maxTemplate+1), "larger than 256 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.tmpl")
			if err := os.WriteFile(path, []byte(test.template), 0o600); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			loaded, err := Load("template", sdk.Path(path), "")
			if err == nil {
				_, err = loaded.Write(data)
			}
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<30 { // in turn: no more than some 100 MiB are held at a time
				t.Errorf("%d MiB allocated", n>>20)
			}
		})
	}
}

// TestWithinBounds: normal templates give the same text as in plain Go, every time.
func TestWithinBounds(t *testing.T) {
	data := bombed{Text: `it's <5> "x"`}
	for i := range 5000 {
		data.Names = append(data.Names, fmt.Sprintf("label %d", i))
	}
	loaded, err := Load("template", "", `{{define "one"}}{{range $i, $n := .}}{{if lt $i 2}}{{printf "%02d. %s (%v)" $i $n true}}{{println}}{{else}}{{break}}{{end}}{{end}}{{end -}}
{{template "one" .Names}}{{html .Text}} {{js .Text}} {{urlquery .Text}} {{print 1 2 "a" "b"}} {{join (slice .Names 0 3) ", "}}{{range .Names}}{{if eq . "none"}}{{.}}{{end}}{{end}}`+
		"{{if false}}"+strings.Repeat("{{else if false}}", 100)+"{{end}}", data)
	if err != nil {
		t.Fatal(err)
	}
	const want = "00. label 0 (true)\n01. label 1 (true)\n" + `it&#39;s &lt;5&gt; &#34;x&#34; it\'s \u003C5\u003E \"x\" it%27s+%3C5%3E+%22x%22 1 2ab label 0, label 1, label 2`
	for range 2 {
		if got, err := loaded.Write(data); err != nil || got != want {
			t.Fatalf("%q, want %q (%v)", got, want, err)
		}
	}
}
