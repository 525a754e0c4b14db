package output_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var columns = []output.Column{
	{Name: "z", Kind: output.TextColumn},
	{Name: "a.b", Kind: output.FloatColumn, Optional: true},
	{Name: "größe, \"x\"", Kind: output.IntColumn, Optional: true},
	{Name: "flagged", Kind: output.BoolColumn},
	{Name: "", Kind: output.TextColumn, Optional: true},
}

func write(t *testing.T, w io.Writer, columns []output.Column, rows ...[]any) {
	t.Helper()
	out := output.NewParquetWriter(w, columns)
	for _, r := range rows {
		must.Do(t, out.Write(r))
	}
	must.Do(t, out.Close())
}

// TestColumns: columns keep their order, types and values.
func TestColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.parquet")
	f, err := os.Create(path)
	must.Do(t, err)
	write(t, f, columns,
		[]any{"one\n\x00é", .25, int64(1) << 62, true, nil},
		[]any{"", nil, nil, false, "x"})
	must.Do(t, f.Close())
	content, err := os.ReadFile(path)
	must.Do(t, err)
	file, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	must.Do(t, err)
	var fields []string
	for _, field := range file.Schema().Fields() {
		fields = append(fields, fmt.Sprint(field.Name(), " ", field.Type(), " ", field.Optional()))
	}
	want := []string{"z STRING false", "a.b DOUBLE true", "größe, \"x\" INT(64,true) true", "flagged BOOLEAN false", " STRING true"}
	if d := cmp.Diff(want, fields); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}
	rows := make([]parquet.Row, 3)
	r := file.RowGroups()[0].Rows()
	n, err := r.ReadRows(rows)
	if n != 2 || err != nil && err != io.EOF {
		t.Fatalf("%d rows, %v", n, err)
	}
	var got []string
	for _, row := range rows[:n] {
		got = append(got, fmt.Sprintf("%q", fmt.Sprint(row)))
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{`"[one\n\x00é 0.25 4611686018427387904 true <null>]"`, `"[ <null> <null> false x]"`}, got); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

// TestMisfits: a value of another kind is refused instead of converted.
func TestMisfits(t *testing.T) {
	for i, row := range [][]any{
		{nil, nil, nil, true, nil}, {"", "1", nil, true, nil}, {"", nil, 1.5, true, nil}, {"", nil, nil, "true", nil}, {"", nil, nil, true, 7},
	} {
		err := output.NewParquetWriter(io.Discard, columns).Write(row)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("column %q", columns[i].Name)) {
			t.Errorf("row %v: %v", row, err)
		}
	}
}

// TestUnfinished: an incomplete file is not valid Parquet, wherever it is cut.
func TestUnfinished(t *testing.T) {
	var whole bytes.Buffer
	write(t, &whole, columns[:1], []any{"a"}, []any{"b"})
	for n := range whole.Len() {
		if file, err := parquet.OpenFile(bytes.NewReader(whole.Bytes()[:n]), int64(n)); err == nil {
			t.Errorf("%d of %d bytes have %d rows", n, whole.Len(), file.NumRows())
		}
	}
}

// TestRowGroups: a large file has several row groups, which bound the memory.
func TestRowGroups(t *testing.T) {
	var out bytes.Buffer
	w := output.NewParquetWriter(&out, columns[:1])
	long := strings.Repeat("long ", 1<<20/5)
	for range 70 {
		must.Do(t, w.Write([]any{long}))
	}
	must.Do(t, w.Close())
	file, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	must.Do(t, err)
	if n := len(file.RowGroups()); n != 3 || file.NumRows() != 70 {
		t.Errorf("%d row groups of %d rows", n, file.NumRows())
	}
}
