package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/source/rows"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var columns = Mapping{ID: "id", Text: "text", Label: "label"}

// sameText compares errors by their text.
var sameText = cmp.Options{cmpopts.IgnoreUnexported(Row{}), cmp.Comparer(func(a, b error) bool {
	return a == b || a != nil && b != nil && a.Error() == b.Error()
})}

func readAll(t *testing.T, format Format, m Mapping, content string) ([]Row, error) {
	t.Helper()
	return rowsOf(Open("-", Form{Format: format}, m, strings.NewReader(content)))
}

// rowsOf returns all rows.
func rowsOf(r *Reader, err error) ([]Row, error) {
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var rows []Row
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
}

func TestRows(t *testing.T) {
	long := strings.Repeat("x", 10<<20)
	var moreText []Row
	for i := range MaxRow / 10 {
		moreText = append(moreText, Row{Line: 3 + i, Text: "more text"})
	}
	tests := []struct {
		name, content string
		format        Format
		mapping       Mapping
		want          []Row
	}{
		{"tsv", "id\ttext\tlabel\n1\thello\tgreet\r\n\n2\tbye\tleave", TSV, columns,
			[]Row{{Line: 2, ID: "1", Text: "hello", Label: "greet"}, {Line: 4, ID: "2", Text: "bye", Label: "leave"}}},
		{"byte order mark", "\xEF\xBB\xBFtext\nhello\n", TSV, columns, []Row{{Line: 2, Text: "hello"}}},
		{"other columns are metadata", "text\tsource\nhello\tmail\n", TSV, columns,
			[]Row{{Line: 2, Text: "hello", Meta: sdk.Meta{"source": "mail"}}}},
		{"chosen metadata", "text\ta\tb\nhello\t1\t2\n", TSV, Mapping{Text: "text", Meta: []string{"b"}},
			[]Row{{Line: 2, Text: "hello", Meta: sdk.Meta{"b": "2"}}}},
		{"mapped columns", "q\tintent\nhello\tgreet\n", TSV, Mapping{Text: "q", Label: "intent"},
			[]Row{{Line: 2, Text: "hello", Label: "greet"}}},
		{"csv with quotes over lines", "text,label\n\"a, b\nc\",x\nd,y\n", CSV, columns,
			[]Row{{Line: 2, Text: "a, b\nc", Label: "x"}, {Line: 4, Text: "d", Label: "y"}}},
		{"jsonl", `{"id": 7, "text": "hello", "year": 2020, "nested": {}}` + "\n", JSONL, columns,
			[]Row{{Line: 1, ID: "7", Text: "hello", Meta: sdk.Meta{"year": 2020.0}}}},
		{"bad rows fail alone", "id\ttext\n1\t\n2\t\xff\n3\t" + long + "\n4\tfine\n5\n", TSV, columns, []Row{
			{Line: 2, ID: "1", Err: errors.New("it has no text")},
			{Line: 3, ID: "2", Text: "\xff", Err: errors.New("it is not valid UTF-8: mend it, or name the encoding of the file")},
			{Line: 4, Err: rows.ErrLineTooLong},
			{Line: 5, ID: "4", Text: "fine"},
			{Line: 6, ID: "5", Err: errors.New("it has 1 fields where the header has 2")}}},
		{"bad csv rows", "text,label\na\"b,x\n" + long + "," + long + "\nfine,y\n", CSV, columns, []Row{
			{Line: 2, Err: rows.NeverClosed(2)},
			{Line: 3, Err: rows.ErrLineTooLong},
			{Line: 4, Text: "fine", Label: "y"}}},
		{"quotes that stay open", "text,label\n\"a,x\nb,y\n\"c\n\nd\",\"z\nfine,\"y\"\n\"e\n", CSV, columns, []Row{
			{Line: 2, Err: errors.New(`extraneous or missing " in quoted-field; double each quote in it`)},
			{Line: 3, Text: "b", Label: "y"},
			{Line: 4, Err: errors.New(`extraneous or missing " in quoted-field; double each quote in it`)},
			{Line: 6, Err: errors.New(`bare " in non-quoted-field; quote the whole field and double each quote in it`)},
			{Line: 7, Text: "fine", Label: "y"},
			{Line: 8, Err: rows.NeverClosed(8)}}},
		{"a quote open over more than a row", "text\n\"a\n" + strings.Repeat("more text\n", MaxRow/10) + "\"b\"\n" + "\"\n", CSV, columns,
			append(append([]Row{{Line: 2, Err: rows.NeverClosed(2)}}, moreText...),
				Row{Line: 3 + MaxRow/10, Text: "b"}, Row{Line: 4 + MaxRow/10, Err: rows.NeverClosed(4 + MaxRow/10)})},
		{"a long line after an open quote", "text\n\"a\n" + long + "\nb\n", CSV, columns,
			[]Row{{Line: 2, Err: rows.NeverClosed(2)}, {Line: 3, Err: rows.ErrLineTooLong}, {Line: 4, Text: "b"}}},
		{"quotes in the wrong places", "text,label\n\"a\"b,x\n\"a\"\"\nb\",\"\"\na\"b,\"x\nfine,y", CSV, columns, []Row{
			{Line: 2, Err: errors.New(`extraneous or missing " in quoted-field; double each quote in it`)},
			{Line: 3, Text: "a\"\nb"},
			{Line: 5, Err: errors.New(`bare " in non-quoted-field; quote the whole field and double each quote in it`)},
			{Line: 6, Text: "fine", Label: "y"}}},
		{"bad json rows", "{\"text\": 3}\n[1]\n{\"text\"\n{\"text\":\"ok\"}", JSONL, columns, []Row{
			{Line: 1, Err: errors.New(`"text" is not a string`)},
			{Line: 2, Err: errors.New("it is not a JSON object")},
			{Line: 3, Err: errors.New("column 7: it is not JSON: unexpected end of JSON input")},
			{Line: 4, Text: "ok"}}},
		{"a zero byte is a row's own affair", "text\nb\x00d\n\x00\x00\ngood\n", TSV, columns,
			[]Row{{Line: 2, Text: "b\x00d"}, {Line: 3, Text: "\x00\x00"}, {Line: 4, Text: "good"}}},
		{"one line without an end", "{\"text\": \"a\"}\r", JSONL, columns, []Row{{Line: 1, Text: "a"}}},
		{"jsonl ids are numbers of any length", `{"id": 1234567890123456789, "label": -1e3, "text": "a", "n": 1e2}` + "\n", JSONL, columns,
			[]Row{{Line: 1, ID: "1234567890123456789", Text: "a", Label: "-1e3", Meta: sdk.Meta{"n": 100.0}}}},
		{"jsonl null is none", `{"id": null, "label": null, "text": "a", "n": null}` + "\n" + `{"text": null}`, JSONL, columns, []Row{
			{Line: 1, Text: "a"},
			{Line: 2, Err: errors.New("it has no text")}}},
		{"jsonl that is not utf-8", "{\"text\": \"\xff\"}\n{\"text\": \"a\", \"x\": \"\xff\"}\n{\"text\": \"a\", \"x\": 1e999}\n", JSONL, columns, []Row{
			{Line: 1, Err: errNotUTF8},
			{Line: 2, Err: errNotUTF8},
			{Line: 3, Text: "a", Err: errors.New(`"x" cannot be kept as metadata: json: cannot unmarshal number 1e999 into Go value of type float64`)}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAll(t, tt.format, tt.mapping, tt.content)
			must.Do(t, err)
			if d := cmp.Diff(tt.want, got, sameText); d != "" {
				t.Errorf("rows differ (-want +got):\n%s", d)
			}
		})
	}
}

func TestFileErrors(t *testing.T) {
	tests := []struct {
		name, content string
		format        Format
		want          string
	}{
		{"empty", "", TSV, "-:1:1: the file is empty"},
		{"no header", "hello there\tgreet\nbye\tleave\n", TSV, `-:1:1: there is no column "text"`},
		{"half a character of utf-16", "\xff\xfet\x00\x00", TSV, `there is no column "text"`},
		{"binary", "PK\x03\x04\x00\x00", CSV, "binary"},
		{"bytes that are no text", "te\x00xt\nhello\n", TSV, "the file is binary"},
		{"cut off within its packing", gzipped("text\nhello\n")[:12], TSV, "the file is cut off within its gzip data: get it once more"},
		{"damaged packing", gzipped("text\nhello\n")[:10] + "\xff\xff\xff\xff\xff\xff\xff\xff\xff", TSV, "the file's gzip data is damaged"},
		{"zstd that is cut off", "\x28\xb5\x2f\xfd\x04", TSV, "cut off within its zstd data"},
		{"bzip2", "BZh91AY&SY\x00", TSV, "unpack it with bunzip2"},
		{"xz", "\xFD7zXZ\x00\x00", TSV, "unpack it with xz -d"},
		{"an old or an encrypted workbook", "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", TSV, "save it as .xlsx without a password, or as CSV"},
		{"parquet from standard input", "PAR1\x15\x04\x00", TSV, "name the file itself"},
		{"pdf", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", TSV, "export its table as CSV"},
		{"sqlite", "SQLite format 3\x00", TSV, "sqlite3 -header -csv"},
		{"only blank lines", "\n \n\n", TSV, "the file is empty"},
		{"an object without rows", `{"version": 3}`, JSON, "there is no column"},
		{"an array that never closes", `[{"text": "a"},`, JSON, "the file is cut off: the array that opens on line 1 is never closed"},
		{"several arrays", `{"a": [{"text": "b"}], "b": [{"text": "c"}]}`, JSON, `say which one counts with sheet = "a"`},
		{"after the array", `[{"text": "a"}] {"text": "b"}`, JSON, "after the end of the rows there is nothing else"},
		{"text as json", "text\nhello\n", JSON, "an array of rows begins with ["},
		{"two of a name", "text\ttext\n", TSV, `two columns are named "text"`},
		{"broken csv header", "te\"xt,label\n", CSV, "-:1:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			must.Do(t, os.WriteFile(path, []byte(tt.content), 0o600))
			if _, err := rowsOf(Open(path, Form{Format: tt.format}, columns, nil)); !strings.Contains(fmt.Sprint(err), strings.TrimPrefix(tt.want, "-")) {
				t.Errorf("as a file: got %v, want %q", err, tt.want)
			}
			if tt.content == `{"version": 3}` {
				return // standard input is not read ahead, so its rows have no text
			}
			_, err := readAll(t, tt.format, columns, tt.content)
			var file *FileError
			if !errors.As(err, &file) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a FileError with %q", err, tt.want)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	digest := func(content string) string {
		r, err := Open("-", Form{Format: TSV}, columns, strings.NewReader(content))
		must.Do(t, err)
		for err == nil {
			_, err = r.Next()
		}
		return r.Digest()
	}
	a, again, b := digest("text\na\n"), digest("text\na\n"), digest("text\nb\n")
	if a != again || a == b {
		t.Errorf("the digest does not follow the content: %s, %s, %s", a, again, b)
	}
}
