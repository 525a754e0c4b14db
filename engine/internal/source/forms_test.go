package source

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// people is the content of the files below.
var people = []Row{
	{ID: "a1", Text: "my card was stolen at the café", Label: "card_lost"},
	{ID: "a2", Text: "where is my money?", Label: "transfer"},
	{ID: "a3", Text: "send it to Zoë; today", Label: "transfer"},
}

// written writes people with a delimiter, and quotes fields that contain it.
func written(delimiter, quote, end string, names ...string) string {
	var b strings.Builder
	if len(names) > 0 {
		b.WriteString(strings.Join(names, delimiter) + end)
	}
	for _, p := range people {
		text := p.Text
		if quote != "" && strings.Contains(text, delimiter) {
			text = quote + text + quote
		}
		b.WriteString(strings.Join([]string{p.ID, text, p.Label}, delimiter) + end)
	}
	return b.String()
}

func encoded(t testing.TB, e encoding.Encoding, text string) string {
	t.Helper()
	out, err := e.NewEncoder().String(text)
	must.Do(t, err)
	return out
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func zstandard(t testing.TB, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	must.Do(t, err)
	return string(w.EncodeAll([]byte(text), nil))
}

// place is the line where the rows of a file begin, and their distance.
type place struct{ first, step int }

func TestForms(t *testing.T) {
	names := []string{"id", "text", "label"}
	plain, semicolons := written("\t", "", "\n", names...), written(";", `"`, "\n", names...)
	wide := func(e unicode.Endianness, b unicode.BOMPolicy) string {
		return encoded(t, unicode.UTF16(e, b), plain)
	}
	no := false
	positions := Mapping{ID: "1", Text: "2", Label: "3"}
	objects := func(before, between, after string) string {
		var all []string
		for _, p := range people {
			all = append(all, `{"id": "`+p.ID+`", "text": "`+p.Text+`", "label": "`+p.Label+`"}`)
		}
		return before + strings.Join(all, between) + after
	}
	nested := strings.NewReplacer(`"text":`, `"data": {"turns": [{"utterance":`, `", "label"`, `"}]}, "label"`).Replace(objects("", "\n", "\n"))
	arrays := `[["a1", "my card was stolen at the café", "card_lost"],
["a2", "where is my money?", "transfer"],
["a3", "send it to Zoë; today", "transfer"]]`
	tests := []struct {
		name, content string
		form          Form
		mapping       Mapping
		at            place
		found         Form // apart from the format
	}{
		{name: "rows.tsv", content: plain},
		{name: "rows.csv", content: written(",", `"`, "\n", names...)},
		{name: "semicolons.csv", content: semicolons, found: Form{Delimiter: ";"}},
		{name: "semicolons.tsv", content: semicolons, found: Form{Delimiter: ";"}},
		{name: "bars.csv", content: written("|", "", "\n", names...), found: Form{Delimiter: "|"}},
		{name: "tabs.csv", content: plain, found: Form{Delimiter: "\t"}},
		{name: "stars.txt", content: written("*", "", "\n", names...), form: Form{Delimiter: "*"}},
		{name: "wide-delimiter.csv", content: written("→", "", "\n", names...), form: Form{Delimiter: "→"}},
		{name: "apostrophes.csv", content: written(";", "'", "\n", names...), form: Form{Quote: "'"}, found: Form{Delimiter: ";"}},
		{name: "no-extension", content: plain},
		{name: "dos.tsv", content: written("\t", "", "\r\n", names...)},
		{name: "old-mac.tsv", content: written("\t", "", "\r", names...)},
		{name: "bom.csv", content: "\uFEFF" + written(",", `"`, "\r\n", names...)},
		{name: "utf-16le.tsv", content: wide(unicode.LittleEndian, unicode.UseBOM), found: Form{Encoding: "utf-16le"}},
		{name: "utf-16be.tsv", content: wide(unicode.BigEndian, unicode.UseBOM), found: Form{Encoding: "utf-16be"}},
		{name: "utf-16le-no-bom.tsv", content: wide(unicode.LittleEndian, unicode.IgnoreBOM), form: Form{Encoding: "utf-16le"}},
		{name: "utf-16be-no-bom.tsv", content: wide(unicode.BigEndian, unicode.IgnoreBOM), form: Form{Encoding: "utf-16be"}},
		{name: "cp1252.csv", content: encoded(t, charmap.Windows1252, semicolons), found: Form{Encoding: "windows-1252", Delimiter: ";"}},
		{name: "latin-2.csv", content: encoded(t, charmap.ISO8859_2, semicolons), form: Form{Encoding: "iso-8859-2"}, found: Form{Delimiter: ";"}},
		{name: "no-header.tsv", content: written("\t", "", "\n"), form: Form{Header: &no}, mapping: positions, at: place{1, 1}},
		{name: "positions.tsv", content: written("\t", "", "\n", "x", "y", "z"), mapping: positions},
		{name: "other-names.csv", content: written(",", `"`, "\n", "Key", " utterance ", "intent"), mapping: Mapping{ID: "Key", Text: "utterance", Label: "intent"}},
		{name: "empty-names.csv", content: strings.ReplaceAll(written(",", `"`, ",,\n", names...), "  ", ""), mapping: columns},
		{name: "rows.jsonl", content: objects("", "\n", "\n"), at: place{1, 1}},
		{name: "joined-boms.jsonl", content: objects("\uFEFF", "\r\n\uFEFF", "\n\uFEFF\n"), at: place{1, 1}},
		{name: "nested.jsonl", content: nested, mapping: Mapping{ID: "id", Text: "data.turns[0].utterance", Label: "label"}, at: place{1, 1}},
		{name: "array.json", content: objects("[\n", ",\n", "\n]\n")},
		{name: "one-line.json", content: objects("[", ", ", "]"), at: place{1, 0}},
		{name: "pretty.json", content: strings.ReplaceAll(objects("[\n", ",\n", "\n]\n"), `, "`, ",\n \""), at: place{2, 3}},
		{name: "object.json", content: objects(`{"version": 2, "sizes": [1, {"a": []}], "rows": [`+"\n", ",\n", "\n]}")},
		{name: "several.json", content: objects(`{"val": [{"text": "no"}], "train": [`+"\n", ",\n", "\n]}"), form: Form{Sheet: "train"}},
		{name: "arrays.json", content: arrays, mapping: positions, at: place{1, 1}},
		{name: "lines.json", content: objects("", "\n", "\n"), at: place{1, 1}},
		{name: "array.jsonl", content: objects("[\n", ",\n", "\n]\n")},
		{name: "objects.txt", content: objects("", "\n", "\n"), at: place{1, 1}},
		{name: "utf-16.json", content: encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), objects("[\n", ",\n", "]")), found: Form{Encoding: "utf-16le"}},
		{name: "rows.tsv.gz", content: gzipped(plain)},
		{name: "rows.jsonl.gz", content: gzipped(objects("", "\n", "\n")), at: place{1, 1}},
		{name: "two-members.csv.gz", content: gzipped(semicolons[:40]) + gzipped(semicolons[40:]), found: Form{Delimiter: ";"}},
		{name: "rows.csv.zst", content: zstandard(t, semicolons), found: Form{Delimiter: ";"}},
		{name: "packed-without-a-name.tsv", content: gzipped(wide(unicode.LittleEndian, unicode.UseBOM)), found: Form{Encoding: "utf-16le"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), tt.name)
			must.Do(t, os.WriteFile(path, []byte(tt.content), 0o600))
			if tt.mapping.Text == "" {
				tt.mapping = columns
			}
			if tt.at.first == 0 {
				tt.at = place{2, 1}
			}
			want := make([]Row, len(people))
			for i, p := range people {
				p.Line = tt.at.first + i*tt.at.step
				want[i] = p
			}
			tt.mapping.Meta = []string{}
			if tt.form.Encoding != "" {
				tt.found.Encoding = tt.form.Encoding
			}
			for _, from := range []string{path, "-"} {
				form := tt.form
				if from == "-" { // standard input has no name
					form.Format = FormatOf(path)
				}
				rows, seen := read(t, from, form, tt.mapping, tt.content)
				if d := cmp.Diff(want, rows, sameText); d != "" {
					t.Errorf("from %s, rows differ (-want +got):\n%s", from, d)
				}
				if tt.found.Delimiter != "" && seen.Delimiter != tt.found.Delimiter || seen.Encoding != tt.found.Encoding {
					t.Errorf("from %s, found %+v, want %+v", from, seen, tt.found)
				}
			}
		})
	}
}

// read returns all rows, and the detected form of the file.
func read(t *testing.T, path string, f Form, m Mapping, stdin string) ([]Row, Form) {
	t.Helper()
	r, err := Open(path, f, m, strings.NewReader(stdin))
	must.Do(t, err)
	rows, err := rowsOf(r, nil)
	must.Do(t, err)
	if path != "-" {
		if whole, err := Digest(path); err != nil || whole != r.Digest() {
			t.Errorf("the digest is %s, and %s of all that was read (%v)", whole, r.Digest(), err)
		}
		if read, size := r.Progress(); read != size {
			t.Errorf("%d of %d bytes were read", read, size)
		}
	}
	return rows, r.Form()
}

// East Asian encodings are not detected, but named.
func TestNamedEncodings(t *testing.T) {
	for name, e := range map[string]encoding.Encoding{"shift_jis": japanese.ShiftJIS, "gbk": simplifiedchinese.GBK, "Shift-JIS": japanese.ShiftJIS, "cp1251": charmap.Windows1251, "euc-jp": japanese.EUCJP} {
		text := map[string]string{"gbk": "我的卡丢了", "cp1251": "где мои деньги"}[name]
		if text == "" {
			text = "カードを失くしました"
		}
		m := Mapping{Text: "text", Meta: []string{}}
		rows, _ := read(t, "-", Form{Format: TSV, Encoding: name}, m, encoded(t, e, "text\n"+text+"\n")+"\xff\xff\xff\n")
		if len(rows) != 2 || rows[0].Text != text || rows[1].Err == nil && name != "cp1251" {
			t.Errorf("%s: got %+v", name, rows)
		}
	}
}
