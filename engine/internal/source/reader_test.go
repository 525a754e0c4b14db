package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// folder writes files into a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

func TestGlob(t *testing.T) {
	dir := folder(t, map[string]string{
		"b.csv":   "label,text\nx,one\n,\ny,two\n",
		"a.csv":   "text;label;extra\nzero;x;1\n",
		"c.jsonl": "{\"text\": \"three\"}\n",
		"d.txt":   "text\nfour\n",
		"~$a.csv": "what Excel leaves beside an open file",
	})
	r, err := Open(filepath.Join(dir, "*.{csv,jsonl}"), Form{}, columns, nil)
	must.Do(t, err)
	defer r.Close()
	rows, err := rowsOf(r, nil)
	must.Do(t, err)
	var got []string
	lines := map[int]bool{}
	for _, row := range rows {
		file, line := row.Place()
		if lines[row.Line] {
			t.Errorf("line %d, %s:%d, came before", row.Line, file, line)
		}
		lines[row.Line] = true
		got = append(got, fmt.Sprintf("%s:%d %s %s %v %v", filepath.Base(file), line, row.Text, row.Label, row.Meta, row.Err))
	}
	want := []string{"a.csv:2 zero x map[extra:1] <nil>", "b.csv:2 one x map[] <nil>", "b.csv:3   map[] it has no text", "b.csv:4 two y map[] <nil>", "c.jsonl:1 three  map[] <nil>"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("rows differ (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"text", "label", "extra"}, r.Columns()); d != "" {
		t.Errorf("columns differ (-want +got):\n%s", d)
	}
	whole, err := Digest(filepath.Join(dir, "*.{csv,jsonl}"))
	if err != nil || whole != r.Digest() {
		t.Errorf("the digest is %s, and %s of what was read (%v)", whole, r.Digest(), err)
	}
	if read, size := r.Progress(); read != size || size != 69 {
		t.Errorf("%d of %d bytes were read", read, size)
	}
	for glob, want := range map[string]string{"*.xyz": "no file matches", "*": "c.jsonl", "[": "pattern"} {
		m := columns
		if glob == "*" {
			m.Text = "label" // the last two have no text column
		}
		if _, err := Open(filepath.Join(dir, glob), Form{}, m, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", glob, err, want)
		}
	}
	for name, want := range map[string]bool{"data/*.csv": true, "data/**/*.{csv,tsv.gz}": true, "data/*": false, "*.{csv,md}": false, "x.json.zst": true} {
		must.Equal(t, name+" says rows", want, Is(name))
	}
}

// A part shares no text with another part, in any spelling, and two parts form the whole.
func TestPart(t *testing.T) {
	var b strings.Builder
	b.WriteString("text\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "question number %d\nQuestion  NUMBER %d\n", i, i)
	}
	of := func(from, to float64) map[string]int {
		texts := map[string]int{}
		rows, err := rowsOf(Open("-", Form{Format: TSV, Part: [2]float64{from, to}}, columns, strings.NewReader(b.String())))
		must.Do(t, err)
		for _, row := range rows {
			texts[strings.ToLower(spaced(row.Text))]++
		}
		return texts
	}
	part := func(from, to float64) Form { return Form{Part: [2]float64{from, to}} }
	if part(0, .9).Shares(part(.9, 1)) || !part(0, .9).Shares(Form{}) || !part(0, .5).Shares(part(.4, 1)) {
		t.Error("parts that share rows are not told from those that do not")
	}
	most, rest := of(0, 0.9), of(0.9, 1)
	if len(most)+len(rest) != 2000 || len(rest) < 150 || len(rest) > 250 {
		t.Errorf("%d and %d texts", len(most), len(rest))
	}
	for text, n := range most {
		if rest[text] != 0 || n != 2 {
			t.Errorf("%q is in both parts, or not twice in one", text)
		}
	}
}

func TestMissingColumns(t *testing.T) {
	tests := []struct{ name, content, want string }{
		{"utterance.csv", "utterance,intent\nhello,greet\n", `the columns are "utterance", "intent". This may be what you want: --column text=utterance --column label=intent on the command line, or text = "utterance", label = "intent" in the block`},
		{"capitals.csv", "Message_ID;Customer Message;label\n1;hello;greet\n", `--column text='Customer Message' --column id=Message_ID on`},
		{"values.tsv", "a\tb\tc\nhow do I pay\tpay\t1\nwhere is my card\tcard\t2\nwhich bill is due\tpay\t3\nis the card lost\tcard\t4\nwho pays\tpay\t5\nwhat card\tcard\t6\n", `--column text=a --column label=b --column id=c`},
		{"no-rows.tsv", "utterance\tintent\n", `the columns are "utterance", "intent". This may be what you want: --column text=utterance --column label=intent`},
		{"headerless.tsv", "hello there\tgreet\nbye now\tleave\n", `write header = false and name columns by position, as text = "1"`},
		{"nested.jsonl", `{"data": {"utterance": "hello"}, "intent": "greet"}` + "\n", `the columns are "data.utterance", "intent". This may be what you want: --column text=data.utterance --column label=intent`},
		{"turns.json", `[{"turns": [{"text": "hello"}, {"text": "bye"}]}]`, `--column text='turns[0].text'`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(folder(t, map[string]string{tt.name: tt.content}), tt.name)
			_, err := Open(path, Form{}, columns, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got  %v\nwant %s", err, tt.want)
			}
			other := columns
			other.Flag = "--other"
			_, err = Open(path, Form{}, other, nil)
			if want := strings.ReplaceAll(tt.want, "--column", "--other"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("with another flag: %v\nwant %s", err, want)
			}
			seen, err := Sniff(path, Form{})
			must.Do(t, err)
			if m := Guess(seen); m.Text != "" { // its proposal works
				if _, err := rowsOf(Open(path, Form{}, m, nil)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
