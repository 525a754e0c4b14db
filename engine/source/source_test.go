package source

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk"
)

var columns = Mapping{ID: "id", Text: "text", Label: "label"}

func readAll(t *testing.T, format Format, m Mapping, content string) ([]Row, error) {
	t.Helper()
	r, err := Open("-", format, m, strings.NewReader(content))
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
			{Line: 2, ID: "1", Fault: errors.New("it has no text")},
			{Line: 3, ID: "2", Text: "\xff", Fault: errors.New("it is not valid UTF-8")},
			{Line: 4, Fault: errTooLong},
			{Line: 5, ID: "4", Text: "fine"},
			{Line: 6, ID: "5", Fault: errors.New("it has 1 fields where the header has 2")}}},
		{"bad csv rows", "text,label\na\"b,x\n" + long + "," + long + "\nfine,y\n", CSV, columns, []Row{
			{Line: 2, Fault: errors.New(`bare " in non-quoted-field`)},
			{Line: 3, Fault: errTooLong},
			{Line: 4, Text: "fine", Label: "y"}}},
		{"bad json rows", "{\"text\": 3}\n[1]\n{\"text\"\n{\"text\":\"ok\"}", JSONL, columns, []Row{
			{Line: 1, Fault: errors.New(`"text" is not a string`)},
			{Line: 2, Fault: errors.New("it is not a JSON object")},
			{Line: 3, Fault: errors.New("column 7: it is not JSON: unexpected end of JSON input")},
			{Line: 4, Text: "ok"}}},
	}
	sameText := cmp.Comparer(func(a, b error) bool {
		return a == b || a != nil && b != nil && a.Error() == b.Error()
	})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAll(t, tt.format, tt.mapping, tt.content)
			if err != nil {
				t.Fatal(err)
			}
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
		{"utf-16", "\xff\xfet\x00", TSV, "UTF-16"},
		{"binary", "PK\x03\x04\x00\x00", CSV, "binary"},
		{"latin-1 header", "text\tl\xe4bel\nhello\tx\n", TSV, "not UTF-8"},
		{"two of a name", "text\ttext\n", TSV, `two columns are named "text"`},
		{"broken csv header", "te\"xt,label\n", CSV, "-:1:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
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
		r, err := Open("-", TSV, columns, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
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
