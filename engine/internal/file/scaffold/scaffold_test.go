package scaffold

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/racflow/racflow/examples"
	"github.com/racflow/racflow/pipelines"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// write writes files into a new folder, and makes it the working directory.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// look does what init does with data, except asking.
func look(t *testing.T, output string, columns map[string]string, paths ...string) (Data, *Plan, error) {
	t.Helper()
	d, err := Look(t.Context(), paths, How{})
	if err != nil {
		return d, nil, err
	}
	for _, r := range d.Rows {
		if err := r.Map(columns); err != nil {
			return d, nil, err
		}
		if err := r.Read(); err != nil {
			return d, nil, err
		}
	}
	p, err := Make(d, Options{Output: output, MiniLM: true})
	return d, p, err
}

// argument returns the value of an argument of a file as text, or its source if it is not constant.
func argument(t *testing.T, file []byte, name string, path ...string) string {
	t.Helper()
	parsed, diags := hclsyntax.ParseConfig(file, "pipeline.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, file)
	}
	body := parsed.Body.(*hclsyntax.Body)
	for _, step := range path {
		kind, label, _ := strings.Cut(step, " ")
		at := slices.IndexFunc(body.Blocks, func(b *hclsyntax.Block) bool {
			return b.Type == kind && (label == "" || b.Labels[0] == label)
		})
		if at < 0 {
			return "no block " + step
		}
		body = body.Blocks[at].Body
	}
	attr := body.Attributes[name]
	if attr == nil {
		return ""
	}
	if v, diags := attr.Expr.Value(nil); !diags.HasErrors() && v.Type().FriendlyName() == "string" {
		return v.AsString()
	}
	at := attr.Expr.Range()
	return string(file[at.Start.Byte:at.End.Byte])
}

// tickets returns rows with two labels.
func tickets(separator, text, label string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s%s\n", text, separator, label)
	for i := range n {
		fmt.Fprintf(&b, "where is the parcel that you should have sent to my house with order %d%s%s\n", i, separator, []string{"order", "refund"}[i%2])
	}
	return b.String()
}

var (
	known   = []string{"knowledge utterances", "source"}
	input   = []string{"pipeline", "input"}
	docs    = []string{"knowledge docs", "source"}
	asked   = []string{"pipeline", "input"}
	german  = strings.Repeat("Die Karte wird mit der Post geschickt und gilt sofort, wenn sie angekommen ist. ", 3)
	english = strings.Repeat("The card is sent by post, and it is valid as soon as it has arrived at your house. ", 3)
)

func TestMake(t *testing.T) {
	type want struct {
		path     []string
		argument string
		value    string
	}
	for name, test := range map[string]struct {
		files   map[string]string
		columns map[string]string
		output  string
		data    []string
		want    []want
		says    []string // parts of Describe
	}{
		"labelled": {
			files: map[string]string{"data/t.csv": tickets(",", "utterance", "intent", 600)}, output: "out.hcl", data: []string{"data/t.csv"},
			want: []want{{known, "path", "data/t.csv"}, {known, "text", "utterance"}, {known, "label", "intent"},
				{known, "part", "[0, 1 - var.held_out]"}, {input, "part", "var.held_out > 0 ? [1 - var.held_out, 1] : [0, 1]"}, {input, "path", "data/t.csv"},
				{[]string{"variable held_out"}, "default", "0.1"}, {[]string{"variable embedder"}, "default", "minilm"}},
			says: []string{"data/t.csv: 600 rows (CSV", "utterance  text ", `labels: 2, from "order" in 300 rows to "refund" in 300 rows`},
		},
		"in another folder": {
			files: map[string]string{"data/t.csv": tickets(",", "text", "label", 20), "p/x": ""}, output: "p/out.hcl", data: []string{"data/t.csv"},
			want: []want{{known, "path", "../data/t.csv"}, {[]string{"variable held_out"}, "default", "0.2"}},
		},
		"other columns": {
			files: map[string]string{"t.csv": tickets(",", "label", "text", 20)}, columns: map[string]string{"text": "label", "label": "text"}, data: []string{"t.csv"},
			want: []want{{known, "text", "label"}, {known, "label", "text"}},
		},
		"hostile names": {
			files: map[string]string{"a \"${x}\" %{y}.tsv": tickets("\t", "te\"xt ${a}", "la%{b}bel\\n", 20)}, data: []string{"a \"${x}\" %{y}.tsv"},
			columns: map[string]string{"text": "te\"xt ${a}", "label": "la%{b}bel\\n"},
			want: []want{{known, "path", "a \"${x}\" %{y}.tsv"}, {known, "text", "te\"xt ${a}"}, {known, "label", "la%{b}bel\\n"},
				{input, "text", "te\"xt ${a}"}},
		},
		"a name of two lines": {
			files: map[string]string{"a\nvariable \"x\" {}\n.tsv": tickets("\t", "text", "label", 20)}, data: []string{"a\nvariable \"x\" {}\n.tsv"},
			want: []want{{known, "path", "a\nvariable \"x\" {}\n.tsv"}},
		},
		"known and tried": {
			files: map[string]string{"test.csv": tickets(",", "text", "label", 9), "train.csv": tickets(",", "body", "queue", 20)}, data: []string{"test.csv", "train.csv"},
			want: []want{{known, "path", "train.csv"}, {known, "text", "body"}, {known, "part", ""}, {input, "path", "test.csv"}, {input, "text", "text"},
				{[]string{"variable held_out"}, "default", "no block variable held_out"}},
		},
		"ids that come again": {
			files: map[string]string{"t.jsonl": "{\"id\":1,\"text\":\"one text of some length\",\"label\":\"a\"}\n{\"id\":1,\"text\":\"two text of some length\",\"label\":\"b\"}\n{\"id\":2,\"text\":\"three of some length\",\"label\":\"a\"}\n{\"id\":3,\"text\":\"four of some length\",\"label\":\"b\"}\n"},
			data:  []string{"t.jsonl"}, columns: map[string]string{"id": "id"},
			want: []want{{known, "id", ""}},
		},
		"too few to hold some out": {
			files: map[string]string{"t.csv": "text,label\nthe first of two,a\nthe first of two,b\n"}, data: []string{"t.csv"},
			columns: map[string]string{"label": "label"},
			want:    []want{{known, "part", ""}, {input, "path", "no block input"}},
			says:    []string{`2 labels have fewer than 5 rows: "b", "a"`},
		},
		"another language": {
			files: map[string]string{"t.tsv": strings.ReplaceAll(tickets("\t", "text", "label", 30), "where is the parcel that you should have sent to my house with order", german)}, data: []string{"t.tsv"},
			want: []want{{[]string{"knowledge utterances", "store"}, "analyzer", "german"}, {[]string{"variable embedder"}, "default", "hashing"}},
			says: []string{", in German"},
		},
		"levels, and labels in two spellings": {
			files: map[string]string{"t.csv": "text,label\n" + strings.Repeat("a late bill,Bill > Late\na wrong bill,Bill > Wrong\na late box,Box > Late\na wrong box,Box > Wrong\nanother wrong box,box > wrong\n", 5)}, output: "boxes 2.hcl", data: []string{"t.csv"},
			want: []want{{known, "levels", " > "}, {input, "levels", ""}, {[]string{"pipeline boxes-2", "elect"}, "accept", "answer in labels"}},
			says: []string{`labels in several spellings: "box > wrong" as "Box > Wrong"`, `paths in a tree, such as "Bill > Late"`},
		},
		"slashes that are no levels": {
			files: map[string]string{"t.csv": "text,label\n" + strings.Repeat("loud music,AC/DC\ncalm music,R/B\nother music,Jazz\n", 5)}, data: []string{"t.csv"},
			want: []want{{known, "levels", ""}, {[]string{"pipeline t", "elect"}, "accept", "answer in labels"}},
		},
		"rows without labels": {
			files: map[string]string{"faq.csv": "question,answer\nhow do I block a lost card of mine,in the app\nwhat does a new card cost me,ten\nwhen does the new card arrive here,within a week\n"}, data: []string{"faq.csv"},
			want: []want{{docs, "path", "faq.csv"}, {docs, "text", "question"}, {docs, "label", ""}, {docs, "exclude", ""},
				{asked, "path", "no block input"}, {[]string{"knowledge docs", "enrich contextualize"}, "use", "no block enrich contextualize"}},
			says: []string{"does not look like labels"},
		},
		"documents": {
			files: map[string]string{"docs/a.md": "# Cards\n\n" + german, "docs/sub/b.txt": german, "docs/c.bin": "\x00\x01"}, data: []string{"docs"},
			want: []want{{docs, "path", "docs"}, {[]string{"knowledge docs", "store"}, "analyzer", "german"}, {asked, "path", "no block input"}},
			says: []string{"docs: 2 documents (", ", in German", "c.bin cannot be used: it is a binary file"},
		},
		"source code": {
			files: map[string]string{"src/a.go": "package a\n", "src/b.go": "package b\n"}, data: []string{"src"},
			want: []want{{[]string{"knowledge docs", "store"}, "analyzer", "code"}, {[]string{"knowledge docs", "chunk"}, "use", "code"}},
		},
		"a row that cannot be used": {
			files: map[string]string{"t.csv": tickets(",", "text", "label", 20) + "one \"x\",order\n,order\n"}, data: []string{"t.csv"},
			says: []string{"t.csv: 20 rows", `2 of 22 rows cannot be used; the first: line 22: bare " in non-quoted-field`},
		},
		"a folder of rows": {
			files: map[string]string{"d/1.csv": tickets(",", "text", "label", 20), "d/2.csv": tickets(",", "text", "label", 30), "d/.hidden": ""}, data: []string{"d"},
			want: []want{{known, "path", "d/*.csv"}},
			says: []string{"d/*.csv: 50 rows"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, test.files)
			if test.output == "" {
				test.output = "pipeline.hcl"
			}
			d, p, err := look(t, test.output, test.columns, test.data...)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range test.want {
				if got := argument(t, p.File, w.argument, w.path...); got != w.value {
					t.Errorf("%s of %s is %q, want %q", w.argument, w.path, got, w.value)
				}
			}
			var b strings.Builder
			d.Describe(&b)

			for _, says := range test.says {
				if !strings.Contains(b.String(), says) {
					t.Errorf("%q is not in\n%s", says, b.String())
				}
			}
			if len(p.Next) == 0 {
				t.Error("nothing says what to do next")
			}
		})
	}
}

// A new file of init has fewer than 60 lines. It sets each argument that the data determines, and declares only
// variables that it shows.
func TestMakeShort(t *testing.T) {
	german := strings.ReplaceAll(tickets("\t", "text", "label", 600), "where is the parcel that you should have sent to my house with order", german)
	write(t, map[string]string{"t.csv": tickets(",", "utterance", "intent", 600), "german.tsv": german, "code/a.go": "package a\n", "prose/a.md": english, "faq.csv": "question,answer\nhow do I block a lost card of mine,in the app\nwhat does a new card cost me,ten\n"})
	for file, want := range map[string][]struct {
		path            []string
		argument, value string
	}{
		"t.csv":      {{known, "path", "t.csv"}, {known, "text", "utterance"}, {known, "part", "[0, 1 - var.held_out]"}, {input, "path", "t.csv"}, {[]string{"variable held_out"}, "default", "0.1"}, {[]string{"knowledge utterances", "store"}, "analyzer", "no block store"}},
		"german.tsv": {{[]string{"knowledge utterances", "store"}, "analyzer", "german"}, {[]string{"variable embedder"}, "default", "hashing"}},
		"code":       {{[]string{"knowledge docs", "enrich path"}, "embed", ""}, {docs, "path", "code"}, {[]string{"knowledge docs", "chunk"}, "use", "code"}, {[]string{"knowledge docs", "store"}, "analyzer", "code"}, {asked, "path", "no block input"}},
		"faq.csv":    {{docs, "path", "faq.csv"}, {docs, "text", "question"}, {[]string{"knowledge docs", "enrich contextualize"}, "use", "no block enrich contextualize"}, {[]string{"knowledge docs", "enrich path"}, "embed", ""}},
		"prose":      {{[]string{"knowledge docs", "enrich path"}, "embed", "false"}},
	} {
		d, _, err := look(t, "pipeline.hcl", map[string]string{}, file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Make(d, Options{Output: "pipeline.hcl", MiniLM: true})
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(p.File), "\n"); lines > 58 || file == "t.csv" && lines > 56 {
			t.Errorf("%s: %d lines", file, lines)
		}
		for _, w := range want {
			if got := argument(t, p.File, w.argument, w.path...); got != w.value {
				t.Errorf("%s: %s of %s is %q, want %q", file, w.argument, w.path, got, w.value)
			}
		}
	}
}

// TestLanguages: texts that are not in English get a model for them, if it is installed. Otherwise the file names the
// model.
func TestLanguages(t *testing.T) {
	rows := strings.ReplaceAll(tickets("\t", "text", "label", 30), "where is the parcel that you should have sent to my house with order", german)
	write(t, map[string]string{"rows.tsv": rows, "docs/a.md": "# Karten\n\n" + german})
	for file, there := range map[string][]string{
		"rows.tsv": {"knowledge utterances", "query: "},
		"docs":     {"knowledge docs", "passage: "},
	} {
		d, _, err := look(t, "pipeline.hcl", map[string]string{}, file)
		must.Do(t, err)
		for _, installed := range []bool{false, true} {
			p, err := Make(d, Options{Output: "pipeline.hcl", MiniLM: true, Multilingual: installed})
			must.Do(t, err)
			want, none := []string{"encoder", "multilingual-e5-small", there[1]}, "no block config encoder"
			if !installed {
				want = []string{"hashing", none, none}
			}
			got := []string{argument(t, p.File, "default", "variable embedder")}
			for _, name := range []string{"model", "passage_prompt"} {
				got = append(got, argument(t, p.File, name, there[0], "embed", "config encoder"))
			}
			must.Equal(t, file, want, got)
			if !strings.Contains(strings.Join(p.Said, " "), "multilingual-e5-small") {
				t.Errorf("said %q", p.Said)
			}
		}
	}
}

func TestMakeRefuses(t *testing.T) {
	rows := tickets(",", "text", "label", 8)
	write(t, map[string]string{"a.csv": rows, "b.csv": rows, "c.csv": rows, "docs/a.md": english, "more/a.md": english, "empty/x.bin": "\x00", "none.csv": "text,label\n", "n.csv": "x,y\n1,2\n3,4\n"})
	for want, data := range map[string][]string{
		"no such file":            {"missing.csv"},
		"too many":                {"a.csv", "b.csv", "c.csv"},
		"two pipelines":           {"docs", "a.csv"},
		"documents both":          {"docs", "more"},
		"binary file":             {"empty"},
		"no usable row":           {"none.csv"},
		"no column looks like":    {"n.csv"},
		"there is nothing to loo": nil,
	} {
		if _, _, err := look(t, "pipeline.hcl", nil, data...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", data, err, want)
		}
	}
	if _, _, err := look(t, "pipeline.hcl", map[string]string{"text": "body"}, "a.csv"); err == nil || !strings.Contains(err.Error(), "it has text, label") {
		t.Errorf("a column that is not there: %v", err)
	}
}

// The files that init writes come with everything that they name.
func TestExamples(t *testing.T) {
	all := Examples(pipelines.Files)
	if !slices.Contains(all, "intent") || !slices.Contains(all, "contextual") {
		t.Fatalf("the examples are %q", all)
	}
	for _, name := range all {
		files, err := Example(name, Options{Pipelines: pipelines.Files}, examples.Files)
		if err != nil {
			t.Fatal(err)
		}
		text := string(files["pipelines/"+name+".hcl"])
		if strings.Contains(text, `variable "embedder"`) && argument(t, []byte(text), "default", "variable embedder") != "hashing" {
			t.Errorf("%s needs a model", name)
		}
		for _, found := range exampleData.FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(file string) bool { return strings.HasPrefix(file, "examples/"+found[1]) }) {
				t.Errorf("%s lacks %s", name, found[1])
			}
		}
		if strings.Contains(text, ".tmpl") && files["pipelines/rage.tmpl"] == nil {
			t.Errorf("%s lacks its template", name)
		}
		with, err := Example(name, Options{Pipelines: pipelines.Files, MiniLM: true}, examples.Files)
		if own, _ := pipelines.Files.ReadFile(name + ".hcl"); err != nil || string(with["pipelines/"+name+".hcl"]) != string(own) {
			t.Errorf("%s is not as it is: %v", name, err)
		}
	}
	if _, err := Example("intend", Options{Pipelines: pipelines.Files}, examples.Files); err == nil || !strings.Contains(err.Error(), "contextual, intent") {
		t.Errorf("an unknown example: %v", err)
	}
}
