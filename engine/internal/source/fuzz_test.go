package source

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/xuri/excelize/v2"

	"github.com/racflow/racflow/engine/internal/source/rows"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// exhaust reads all rows of a text, which may be cut off anywhere. There are no more rows than
// bytes, and line numbers increase.
func exhaust(t *testing.T, f Form, m Mapping, content []byte) {
	r, err := Open("-", f, m, bytes.NewReader(content))
	if err != nil {
		return
	}
	defer r.Close()
	line := 0
	for n := 0; ; n++ {
		row, err := r.Next()
		if err != nil {
			return
		}
		if row.Line < line || row.Line < 1 || n > len(content)*1000+1 {
			t.Fatalf("row %d stands on line %d, after one on line %d", n, row.Line, line)
		}
		if line = row.Line; row.Err == nil && strings.TrimSpace(row.Text) == "" {
			t.Fatalf("a row without a text is taken: %+v", row)
		}
	}
}

func FuzzDelimited(f *testing.F) {
	f.Add([]byte("text;label\n\"a;b\";c\n\"x\"\"y\";z\n"), "", "")
	f.Add([]byte("text\tlabel\r\na\tb\r\n"), "\t", "'")
	f.Add([]byte("text→label\ra→b\r"), "→", "none")
	f.Add([]byte("\xff\xfet\x00e\x00x\x00t\x00\n\x00a\x00\n\x00"), ",", "|")
	f.Fuzz(func(t *testing.T, content []byte, delimiter, quote string) {
		for _, format := range []Format{"", TSV, CSV} {
			exhaust(t, Form{Format: format, Delimiter: delimiter, Quote: quote}, Mapping{Text: "text", Label: "2", Fields: true}, content)
		}
	})
}

func FuzzEncodings(f *testing.F) {
	f.Add([]byte("text\ncaf\xe9\n"), "")
	f.Add([]byte("t\x00e\x00x\x00t\x00\n\x00"), "")
	f.Add([]byte("text\n\x83\x4a\x81\n"), "shift_jis")
	f.Add([]byte("\x00\x00\xfe\xff\x00\x00\x00t"), "utf-16")
	f.Fuzz(func(t *testing.T, content []byte, encoding string) {
		exhaust(t, Form{Encoding: encoding}, Mapping{Text: "1"}, content)
	})
}

func FuzzPacked(f *testing.F) {
	f.Add([]byte(gzipped("text\nhello\n")))
	w, err := zstd.NewWriter(nil)
	must.Do(f, err)
	f.Add(w.EncodeAll([]byte("text\nhello\n"), nil))
	f.Add([]byte(gzipped(gzipped("text\nhello\n"))))
	f.Fuzz(func(t *testing.T, content []byte) { exhaust(t, Form{}, Mapping{Text: "text"}, content) })
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`[{"text": "a", "t": [{"x": "b"}]}, {"text": "\"\\"}]`), "t[0].x", "")
	f.Add([]byte(`{"v": 1, "a": [{"text": "a"}], "b": [["c"]]}`), "text", "b")
	f.Add([]byte("{\"a.b\": {\"b\": \"c\"}}\n{\"a\": {\"b\": 7}}\n[1]\n"), "a.b", "")
	f.Add([]byte("[[\"a\", 2], [null, true, 1e5]]"), "1", "")
	f.Fuzz(func(t *testing.T, content []byte, path, array string) {
		for _, format := range []Format{"", JSON, JSONL} {
			exhaust(t, Form{Format: format, Sheet: array}, Mapping{Text: path, Fields: true}, content)
		}
		p := rows.ParseJSONPath(path)
		if members, err := rows.JSONMembers(content, true); err == nil {
			for _, m := range members {
				p.In(m.Value)
			}
		}
	})
}

func FuzzParquet(f *testing.F) {
	f.Add([]byte(parquetOf(f, people2()...)))
	f.Add([]byte(parquetOf(f, struct{ Text string }{"hello"})))
	f.Fuzz(func(t *testing.T, content []byte) {
		p, err := rows.OpenParquet(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return
		}
		for n := 0; ; n++ {
			if _, err := p.Next(); err != nil {
				break
			}
			if n > 100*len(content)+200_000 {
				t.Fatalf("%d bytes hold more than %d rows", len(content), n)
			}
		}
		_ = p.Close()
	})
}

func FuzzWorkbook(f *testing.F) {
	f.Add([]byte(workbook(f, excelize.Options{}, map[string][][]any{"data": {{"text", "label"}, {"hello", 7}}})))
	f.Fuzz(func(t *testing.T, content []byte) {
		w, err := rows.OpenWorkbook(bytes.NewReader(content), int64(len(content)), "")
		if err != nil {
			return
		}
		for n := 0; ; n++ {
			if _, err := w.Next(); err != nil {
				break
			}
		}
		_ = w.Close()
	})
}

// The content of a file is read completely, wherever a stream is cut into pieces.
func TestPieces(t *testing.T) {
	for _, content := range []string{written(";", `"`, "\r\n", "id", "text", "label"), written("\t", "", "\n", "id", "text", "label"), written("\t", "", "\r", "id", "text", "label"), gzipped(written(",", `"`, "\n", "id", "text", "label"))} {
		whole, err := rowsOf(Open("-", Form{}, columns, strings.NewReader(content)))
		must.Do(t, err)
		pieces, err := rowsOf(Open("-", Form{}, columns, iotest.OneByteReader(strings.NewReader(content))))
		if err != nil || len(whole) != len(people) || len(pieces) != len(people) {
			t.Errorf("%d rows, and %d byte by byte (%v) of %q", len(whole), len(pieces), err, content)
		}
		path := filepath.Join(t.TempDir(), "rows.txt")
		must.Do(t, os.WriteFile(path, []byte(content), 0o600))
		if file, err := rowsOf(Open(path, Form{}, columns, nil)); err != nil || len(file) != len(people) {
			t.Errorf("%d rows of a file (%v)", len(file), err)
		}
	}
}
