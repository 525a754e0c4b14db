package source

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/xuri/excelize/v2"

	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

type spoken struct {
	Who  string `parquet:"who"`
	Text string `parquet:"text"`
}

type person struct {
	ID    int64     `parquet:"id"`
	Label *string   `parquet:"label,optional"`
	Text  string    `parquet:"text"`
	Score float64   `parquet:"score"`
	On    time.Time `parquet:"on,timestamp(millisecond)"`
	Price int64     `parquet:"price,decimal(2:10)"`
	Sure  bool      `parquet:"sure"`
	Raw   []byte    `parquet:"raw"`
	Turns []spoken  `parquet:"turns,list"`
}

// parquetOf writes a Parquet file.
func parquetOf[T any](t testing.TB, rows ...T) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.Compression(&parquet.Snappy))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	must.Do(t, w.Close())
	return b.String()
}

// workbook writes sheets of rows, by name; the first is empty.
func workbook(t testing.TB, options excelize.Options, sheets map[string][][]any) string {
	t.Helper()
	f := excelize.NewFile()
	for name, rows := range sheets {
		if _, err := f.NewSheet(name); err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			must.Do(t, f.SetSheetRow(name, fmt.Sprintf("A%d", i+1), &row))
		}
	}
	var b bytes.Buffer
	must.Do(t, f.Write(&b, options))
	return b.String()
}

var greet = "greet"

func people2() []person {
	day := time.Date(2024, 2, 29, 12, 30, 0, 0, time.UTC)
	return []person{
		{ID: 1 << 60, Label: &greet, Text: "hello", Score: .5, On: day, Price: 1234, Sure: true, Raw: []byte{0xff, 0}, Turns: []spoken{{"me", "hi there"}}},
		{ID: 2, Text: " ", On: day},
		{ID: 3, Text: "bye", On: day, Turns: []spoken{{"you", "so long"}}},
	}
}

func TestParquet(t *testing.T) {
	dir := folder(t, map[string]string{"rows.parquet": parquetOf(t, people2()...), "no-name": parquetOf(t, people2()...), "empty.pq": parquetOf[person](t)})
	m := Mapping{ID: "id", Text: "text", Label: "label", Fields: true, Meta: []string{"score", "sure"}}
	for _, name := range []string{"rows.parquet", "no-name"} {
		rows, form := read(t, filepath.Join(dir, name), Form{}, m, "")
		if len(rows) != 3 || form.Format != Parquet {
			t.Fatalf("%s: %d rows of %+v", name, len(rows), form)
		}
		want := []result.Field{
			{Name: "score", Value: json.Number("0.5")}, {Name: "on", Value: "2024-02-29T12:30:00Z"}, {Name: "price", Value: json.Number("12.34")}, {Name: "sure", Value: true}, {Name: "raw", Value: "/wA="},
			{Name: "turns", Value: json.RawMessage(`[{"text":"hi there","who":"me"}]`)},
		}
		if d := cmp.Diff(want, rows[0].Fields); d != "" {
			t.Errorf("fields differ (-want +got):\n%s", d)
		}
		must.Equal(t, "rows[0]", []any{"1152921504606846976", "greet", 1, .5, true}, []any{rows[0].ID, rows[0].Label, rows[0].Line, rows[0].Meta["score"], rows[0].Meta["sure"]})
		if rows[1].Err == nil || rows[1].Line != 2 || rows[2].Text != "bye" || rows[2].Label != "" {
			t.Errorf("got %+v", rows[1:])
		}
	}
	m = Mapping{Text: "turns[0].text", Meta: []string{}}
	rows, _ := read(t, filepath.Join(dir, "rows.parquet"), Form{Part: [2]float64{0, 1}}, m, "")
	if rows[0].Text != "hi there" || rows[1].Err == nil || rows[2].Text != "so long" {
		t.Errorf("by a path: %+v", rows)
	}
	seen, err := Sniff(filepath.Join(dir, "rows.parquet"), Form{})
	if err != nil || !seen.Whole || seen.Rows != 3 || seen.Columns[len(seen.Columns)-1].Name != "turns[0].who" {
		t.Errorf("seen: %+v, %v", seen, err)
	}
	if rows, _ := read(t, filepath.Join(dir, "empty.pq"), Form{}, columns, ""); len(rows) != 0 {
		t.Errorf("of no rows: %+v", rows)
	}
	if _, err := Open(filepath.Join(dir, "rows.parquet"), Form{}, Mapping{Text: "utterance", Label: "intent"}, nil); err == nil || !strings.Contains(err.Error(), "--column text=text --column label=label") {
		t.Errorf("a column that is missing: %v", err)
	}
}

func TestWorkbook(t *testing.T) {
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	sheets := map[string][][]any{
		"data":  {{"id", "text", "label", "n", "on"}, {"a", "hello & <bye>", "greet", 7, day}, {}, {nil, " ", "greet"}, {"c", "where is my café", "find", 1.5, nil}},
		"other": {{"text"}, {"no"}},
	}
	dir := folder(t, map[string]string{"rows.xlsx": workbook(t, excelize.Options{}, sheets), "no-name": workbook(t, excelize.Options{}, sheets)})
	m := Mapping{ID: "id", Text: "text", Label: "label"}
	for _, name := range []string{"rows.xlsx", "no-name"} {
		r, err := Open(filepath.Join(dir, name), Form{Sheet: "data"}, m, nil)
		rows, err := rowsOf(r, err)
		must.Do(t, err)
		want := []Row{
			{Line: 2, ID: "a", Text: "hello & <bye>", Label: "greet", Meta: map[string]any{"n": "7", "on": rows[0].Meta["on"]}},
			{Line: 4, Text: " ", Label: "greet", Err: fmt.Errorf("it has no text")},
			{Line: 5, ID: "c", Text: "where is my café", Label: "find", Meta: map[string]any{"n": "1.5"}},
		}
		if d := cmp.Diff(want, rows, sameText); d != "" {
			t.Errorf("rows differ (-want +got):\n%s", d)
		}
		if on := rows[0].Meta["on"]; on != "2024-02-29" {
			t.Errorf("a day reads %q", on)
		}
		if whole, err := Digest(filepath.Join(dir, name)); err != nil || whole != r.Digest() {
			t.Errorf("the digest is %s, not %s (%v)", r.Digest(), whole, err)
		}
	}
	rows, form := read2(t, filepath.Join(dir, "rows.xlsx"), Form{})
	if len(rows) == 0 || form.Sheet != "data" && form.Sheet != "other" {
		t.Errorf("without a sheet: %+v of %+v", rows, form)
	}
}

// A formula without a value makes rows unusable if they need it; otherwise it is only noted.
func TestFormulas(t *testing.T) {
	f := excelize.NewFile()
	for i, row := range [][]any{{"id", "text", "label", "price", "split"}, {900000000000207001, "hello", nil, nil, "train"}, {900000000000207002, nil, "greet", 1, "train"}, {900000000000207003, "bye", "leave", 0.1 + 0.2, "test"}} {
		must.Do(t, f.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &row))
	}
	for _, cell := range []string{"C2", "D2", "B3"} {
		must.Do(t, f.SetCellFormula("Sheet1", cell, `IF(A2>1,"a","b")`))
	}
	must.Do(t, f.MergeCell("Sheet1", "E2", "E3"))
	var b bytes.Buffer
	must.Do(t, f.Write(&b))
	path := filepath.Join(folder(t, map[string]string{"rows.xlsx": b.String()}), "rows.xlsx")
	m := Mapping{ID: "id", Text: "text", Label: "label"}
	for name, tt := range map[string]struct {
		mapping Mapping
		form    Form
		errs    string
	}{
		"used":               {m, Form{}, "label text -"},
		"not used":           {Mapping{Text: "id"}, Form{}, "- - -"},
		"metadata":           {Mapping{Text: "id", Meta: []string{"price"}}, Form{}, "price - -"},
		"of no column":       {m, Form{Where: [2]string{"split", "test"}}, "-"},
		"which rows count":   {Mapping{Text: "id"}, Form{Where: [2]string{"label", "greet"}}, "label -"},
		"a row with a value": {Mapping{Text: "id", Label: "label"}, Form{}, "label - -"},
	} {
		r, err := Open(path, tt.form, tt.mapping, nil)
		rows, err := rowsOf(r, err)
		must.Do(t, err)
		var errs []string
		for _, row := range rows {
			column := "-"
			if row.Err != nil {
				_, after, _ := strings.Cut(row.Err.Error(), `the formula in column "`)
				column, _, _ = strings.Cut(after, `" has no value: open the file in Excel or LibreOffice and save it`)
			}
			errs = append(errs, column)
		}
		if got := strings.Join(errs, " "); got != tt.errs {
			t.Errorf("%s: errors of %s, not of %s", name, got, tt.errs)
		}
		if notes := strings.Join(r.Notes(), "\n"); !strings.Contains(notes, `formulas in column "label" have no value`) || !strings.Contains(notes, `formulas in column "price" have no value`) || !strings.Contains(notes, "(rows below the first: 1)") {
			t.Errorf("%s: notes %s", name, notes)
		}
		if last := rows[len(rows)-1]; tt.mapping.ID != "" && (last.ID != "900000000000207003" || last.Meta["price"] != "0.3") {
			t.Errorf("%s: %+v", name, last)
		}
	}
}

// read2 is read without the checks for streams.
func read2(t *testing.T, path string, f Form) ([]Row, Form) {
	t.Helper()
	r, err := Open(path, f, columns, nil)
	rows, err := rowsOf(r, err)
	must.Do(t, err)
	return rows, r.Form()
}

// archive returns a zip archive of files of spaces.
func archive(t testing.TB, sizes map[string]int) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, size := range sizes {
		f, err := w.Create(name)
		must.Do(t, err)
		for spaces := bytes.Repeat([]byte(" "), 1<<20); size > 0; size -= len(spaces) {
			if _, err := f.Write(spaces[:min(size, len(spaces))]); err != nil {
				t.Fatal(err)
			}
		}
	}
	must.Do(t, w.Close())
	return b.String()
}

// edited returns a workbook with replaced text in its sheets.
func edited(t *testing.T, book, from, to string) string {
	t.Helper()
	in, err := zip.NewReader(strings.NewReader(book), int64(len(book)))
	must.Do(t, err)
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	for _, f := range in.File {
		part, err := f.Open()
		must.Do(t, err)
		text, err := io.ReadAll(part)
		must.Do(t, err)
		if strings.HasPrefix(f.Name, "xl/worksheets/") {
			text = []byte(strings.Replace(string(text), from, to, 1))
		}
		w, err := out.Create(f.Name)
		must.Do(t, err)
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	must.Do(t, out.Close())
	return b.String()
}

func TestRefusedTables(t *testing.T) {
	good, book := parquetOf(t, people2()...), workbook(t, excelize.Options{}, map[string][][]any{"data": {{"text"}, {"hello"}}})
	tests := []struct{ name, content, want string }{
		{"empty.parquet", "", "the file is empty"},
		{"cut.parquet", good[:len(good)/2], "the file is cut off, or no Parquet"},
		{"text.parquet", "text\nhello world\n", "the file is cut off, or no Parquet"},
		{"footer.parquet", "PAR1\x00\x00\x00\x00\xff\xff\xff\x7fPAR1", "its footer is said to have 2147483647 bytes"},
		{"packed.parquet.gz", gzipped(good), "name the file itself"},
		{"encrypted.xlsx", workbook(t, excelize.Options{Password: "secret"}, nil), "save it as .xlsx without a password, or as CSV"},
		{"cut.xlsx", book[:len(book)/2], "the file is cut off, or no workbook"},
		{"damaged.xlsx", book[:100] + strings.Repeat("\xff", 20) + book[120:], "damaged"},
		{"bomb.xlsx", archive(t, map[string]int{"xl/workbook.xml": 10, "xl/worksheets/sheet1.xml": 80 << 20}), "nobody writes such a workbook"},
		{"long.xlsx", archive(t, map[string]int{"xl/workbook.xml": 10, "xl/worksheets/sheet1.xml": 20 << 20}), "a text is longer than"},
		{"torn.xlsx", edited(t, book, "<c ", "<d "), "the workbook is damaged"},
		{"deep.xlsx", edited(t, book, "<sheetData>", strings.Repeat("<a>", 65)), "more than 64 elements stand in one another"},
		{"comment.xlsx", edited(t, book, "<sheetData>", "<!--"+strings.Repeat("< ", 9<<20)+"--><sheetData>"), "a text is longer than"},
		{"words.xlsx", archive(t, map[string]int{"word/document.xml": 10}), "no workbook of Excel"},
		{"blank.xlsx", workbook(t, excelize.Options{}, nil), "the workbook has no rows"},
		{"sheet.xlsx", book, `there is no sheet "none"; the sheets are Sheet1, data`},
		{"workbook.csv", book, "its name ends in .xlsx"},
		{"bomb.tsv.gz", gzipped("text\n" + strings.Repeat(" ", 70<<20)), "nobody writes such rows"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(folder(t, map[string]string{tt.name: tt.content}), tt.name)
			form := Form{}
			if tt.name == "sheet.xlsx" {
				form.Sheet = "none"
			}
			if _, err := rowsOf(Open(path, form, columns, nil)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
	for format, content := range map[Format]string{Parquet: good, XLSX: book} {
		if _, err := Open("-", Form{Format: format}, columns, strings.NewReader(content)); err == nil || !strings.Contains(err.Error(), "standard input") {
			t.Errorf("%s from standard input: %v", format, err)
		}
	}
}

// A label is a text, or a list of one text; a list of several is an error of only that row.
func TestListsOfLabels(t *testing.T) {
	content := "{\"text\": \"a\", \"label\": [\"x\"]}\n{\"text\": \"b\", \"label\": [\"x\", \"y\"]}\n{\"text\": \"c\", \"label\": []}\n{\"text\": \"d\", \"label\": [{}]}\n"
	rows, _ := read(t, "-", Form{Format: JSONL}, Mapping{Text: "text", Label: "label"}, content)
	must.Equal(t, "labels and errors of a list of one, and of none; a list of several is one, an object is not, but an error", []any{"x", nil, "", nil, true, false, true},
		[]any{rows[0].Label, rows[0].Err, rows[2].Label, rows[2].Err, errors.Is(rows[1].Err, ErrSeveralLabels), errors.Is(rows[3].Err, ErrSeveralLabels), rows[3].Err != nil})
	if rows, _ = read(t, "-", Form{Format: JSONL}, Mapping{Text: "text", Label: "label[0]"}, content); rows[1].Label != "x" || rows[1].Err != nil {
		t.Errorf("the first of them: %+v", rows[1])
	}
}

// A column selects the rows that count, in tables and in objects. Parts of a file with different values
// in that column share no rows.
func TestWhere(t *testing.T) {
	for format, content := range map[Format]string{
		CSV:   "text,label,split\na,x,train\nb,y, test \nc,x,\n",
		JSONL: "{\"text\": \"a\", \"split\": \"train\"}\n{\"text\": \"b\", \"split\": \"test\"}\n{\"text\": \"c\"}\n",
	} {
		rows, _ := read(t, "-", Form{Format: format, Where: [2]string{"split", "test"}}, Mapping{Text: "text"}, content)
		if len(rows) != 1 || rows[0].Text != "b" {
			t.Errorf("%s: %+v", format, rows)
		}
	}
	if _, err := Open("-", Form{Format: CSV, Where: [2]string{"set", "test"}}, Mapping{Text: "text"}, strings.NewReader("text,split\na,test\n")); err == nil || !strings.Contains(err.Error(), `no column "set"`) {
		t.Errorf("a column that is not there: %v", err)
	}
	train, test := Form{Where: [2]string{"split", "train"}}, Form{Where: [2]string{"split", "test"}}
	if train.Shares(test) || !train.Shares(train) || !train.Shares(Form{}) {
		t.Error("parts that share rows")
	}
}
