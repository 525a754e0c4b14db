package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// Non-standard output of programs is read as intended, or the row reports why not.
func TestDialects(t *testing.T) {
	const head = "text,label\n"
	for name, test := range map[string]struct {
		content string
		want    []string // text, label and error of each row
	}{
		"a.csv: quotes with backslashes": {head + `"say \"no\", now",a` + "\n" + `"5\" wide",b` + "\n" + `"C:\\new \d",c` + "\n", []string{`say "no", now|a`, `5" wide|b`, `C:\new \d|c`}},
		"b.csv: one of many":             {head + strings.Repeat("plain,a\n", 9) + `"5\" wide, 6\" long",b` + "\n", append(slicesOf(9, "plain|a"), `5" wide, 6" long|b`)},
		"c.csv: semicolons":              {"text;label\n" + `"say \"no\"; now";a` + "\n" + `"b";\N` + "\n", []string{`say "no"; now|a`, "b|"}},
		"d.csv: escaped delimiters":      {head + `one\, two,a` + "\nthree,b\n", []string{"one, two|a", "three|b"}},
		"e.csv: escaped line ends":       {head + "\"say \\\"one\\\"\\\ntwo\",a\nthree,b\n", []string{"say \"one\"\ntwo|a", "three|b"}},
		"f.csv: paths of Windows":        {head + `"C:\",a` + "\n" + `"D:\\data\",b` + "\n", []string{`C:\|a`, `D:\\data\|b`}},
		"g.csv: doubled quotes":          {head + `"say ""no"" \n",a` + "\n", []string{`say "no" \n|a`}},
		"h.tsv: no quotes":               {"text\tlabel\n" + `say \"no\"` + "\ta\n", []string{`say \"no\"|a`}},
		"i.csv: a delimiter at the ends": {head + "one,a,\ntwo,b,,\n", []string{"one|a", "two|b"}},
		"j.csv: also of the header":      {"text;label;\none;a;\ntwo;b\n", []string{"one|a", "two|b"}},
		"k.csv: a field more":            {head + "one,a,x\ntwo,b\n", []string{"one|a|it has 3 fields where the header has 2", "two|b"}},
		"l.jsonl: no numbers":            {`{"text": "NaN \"NaN", "label": NaN, "x": [NaN, -Infinity, -1]}` + "\n" + `{"text": NaN, "label": "a"}` + "\n", []string{`NaN "NaN|`, "|a|it has no text"}},
		"m.json: no numbers":             {`[{"text": "one", "label": "a", "x": NaN}, {"text": "two\\", "label": "b", "x": {"y": -Infinity}}, {"text": Infinity, "x": -1}]`, []string{"one|a", `two\|b`, "||row 3 of the array: it has no text"}},
		"n.jsonl: true and false":        {`{"text": "one", "label": true}` + "\n" + `{"text": "two", "label": [false]}` + "\n" + `{"text": true, "label": 1}` + "\n", []string{"one|true", "two|false", `|1|"text" is not a string`}},
		"p.tsv: quoted by pandas":        {"\"text\"\t\"label\"\t\"n\"\n" + "\"he said \"\"x\"\"\"\t\"a\"\t1\n" + "\"t2\"\t\"b\"\t2\n", []string{`he said "x"|a`, "t2|b"}},
		"p.txt: quoted by Excel":         {"text\tlabel\r\n" + "\"he said \"\"x\"\"\"\ta\r\n" + "\"b, y\"\t\"b, x\"\r\n", []string{`he said "x"|a`, "b, y|b, x"}},
		"p.tab: quoted for a tab":        {"text\tlabel\n" + "\"one\ttwo\"\ta\n" + "three\tb\n", []string{"one\ttwo|a", "three|b"}},
		"q.tsv: quoted for lines":        {"text\tlabel\n" + "\"one\ntwo\"\ta\n" + "three\tb\n", []string{"one\ntwo|a", "three|b"}},
		"q.tab: quoted by R":             {"\"text\"\t\"label\"\n" + `"he said \"x\""` + "\t\"a\"\n", []string{`he said "x"|a`}},
		"q.txt: quoted, and long":        {"\"text\"\t\"label\"\n" + strings.Repeat("\"one\n\ntwo\"\t\"a\"\n", 9000), slicesOf(9000, "one\n\ntwo|a")},
		"r.tsv: marks at the beginning":  {"text\tlabel\n" + "\"Hello\" he said\ta\n" + "\"a \"\"b\"\"\"\tb\n", []string{`"Hello" he said|a`, `"a ""b"""|b`}},
		"r.txt: quotations":              {"text\tlabel\n" + "\"to be\"\ta\n" + "not\tb\n" + "\"or\"\tb\n", []string{`"to be"|a`, "not|b", `"or"|b`}},
		"r.tab: marks over rows":         {"text\tlabel\n" + "\"to be\ta\n" + "not\tb\n" + "or\"\tb\n", []string{`"to be|a`, "not|b", `or"|b`}},
		"s.tsv: marks over fields":       {"text\tlabel\tnote\n" + "\"to\ta\tbe\"\n", []string{`"to|a`}},
		"s.tab: an inch":                 {"text\tlabel\n" + "\"a \"\"b\"\"\"\t5\" wide\n", []string{`"a ""b"""|5" wide`}},
		"t.csv: JSONL":                   {`{"text": "one, two", "label": "a"}` + "\n" + `{"text": "three", "label": "b"}` + "\n", []string{"one, two|a", "three|b"}},
		"t.tsv: a JSON array":            {"[\n" + `{"text": "one, two", "label": "a"},` + "\n" + `{"text": "three", "label": "b"}` + "\n]\n", []string{"one, two|a", "three|b"}},
		"u.csv: JSON in a field":         {"text\tlabel\n" + `{"a": 1}` + "\ta\n", []string{"||bare \" in non-quoted-field; quote the whole field and double each quote in it"}},
		"v.json: objects":                {`[{"text": "one", "label": {"choices": ["a"]}}, {"text": "two", "label": {"choices": ["b"]}}]`, []string{`one||"label" is not a string but an object: name a value in it, such as "label.choices[0]", in place of "label"`, `two||row 2 of the array: "label" is not a string but an object: name a value in it, such as "label.choices[0]", in place of "label"`}},
		"w.csv: ends of lines":           {"text,label\n" + "one,a\rtwo,b\r", []string{"one|a\rtwo|some lines end in CR, and some in LF: write the file with one line end for all"}},
		"o.jsonl: a comment":             {`{"text": "one"} // x` + "\n" + `{"text": "two",}` + "\n" + `{'text': 'x'}` + "\n", []string{"||column 17: it is not JSON: it has no comments: remove this one", "||column 16: it is not JSON: a comma stands before the closing bracket: remove it", "||column 2: it is not JSON: this is how Python prints values: write them with json.dumps (invalid character '\\'' looking for beginning of object key string)"}},
	} {
		t.Run(name, func(t *testing.T) {
			file, _, _ := strings.Cut(name, ":")
			path := filepath.Join(folder(t, map[string]string{file: test.content}), file)
			rows, _ := read(t, path, Form{}, Mapping{Text: "text", Label: "label"}, "")
			var got []string
			for _, row := range rows {
				said := row.Text + "|" + row.Label
				if row.Err != nil {
					said += "|" + row.Err.Error()
				}
				got = append(got, said)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("rows differ (-want +got):\n%s", diff)
			}
		})
	}
}

func slicesOf(n int, text string) (all []string) {
	for range n {
		all = append(all, text)
	}
	return all
}

// An unreadable JSON file reports the place and the reason.
func TestNotJSON(t *testing.T) {
	for content, want := range map[string]string{
		"[\n {\"text\": \"a\"},\n]":                    ":3:1: it is not JSON: a comma stands before the closing bracket",
		"[{\"text\": \"a\",\n \"b\": 1,}]":             ":2:9: it is not JSON: a comma stands before the closing bracket",
		"{\"rows\": [{\"text\": \"a\"}],}":             ":1:26: it is not JSON: a comma stands before the closing bracket",
		"[\n// one\n {\"text\": \"a\"}]":               ":2:1: it is not JSON: it has no comments",
		"[{\"text\": \"a\"}, # one\n {\"text\": 1}]":   ":1:17: it is not JSON: it has no comments",
		"[{\"text\": \"a\"},\n {'text': 1}]":           ":2:3: it is not JSON: this is how Python prints values",
		"[{\"text\": \"a\", \"x\": NaN},\n {\"b\" 1}]": ":2:7: it is not JSON: invalid character '1' after object key",
		"{\"rows\": [{\"text\": \"a\"}] \"x\"}":        ":1:26: it is not JSON: invalid character",
	} {
		path := filepath.Join(t.TempDir(), "a.json")
		must.Do(t, os.WriteFile(path, []byte(content), 0o600))
		r, err := Open(path, Form{}, columns, nil)
		if _, err = rowsOf(r, err); err == nil || !strings.Contains(err.Error(), path+want) {
			t.Errorf("%s\n%v, want %s", content, err, want)
		}
	}
}

// Names are found in either normal form of Unicode, and an existing name is not a pattern.
func TestFilesFound(t *testing.T) {
	dir := folder(t, map[string]string{"Ru\u0308ckgabe.csv": "text\none\n", "a[1].csv": "text\ntwo\n"})
	must.Do(t, os.MkdirAll(filepath.Join(dir, "b [x]*"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, "b [x]*", "c.csv"), []byte("text\nthree\n"), 0o600))
	for pattern, want := range map[string]string{"R\u00fcck*.csv": "Ru\u0308ckgabe.csv", "Ru\u0308*": "Ru\u0308ckgabe.csv", "a[1].csv": "a[1].csv", "b [x]*/*.csv": "b [x]*/c.csv"} {
		files, err := Files(filepath.Join(dir, pattern))
		if err != nil || len(files) != 1 || files[0] != filepath.Join(dir, want) {
			t.Errorf("%s: %q, %v", pattern, files, err)
		}
	}
}
