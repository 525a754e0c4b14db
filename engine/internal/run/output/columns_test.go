package output

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// customers returns results of rows with own columns, some of which have names of racflow's
// columns.
func customers() []outcome.Result {
	return []outcome.Result{
		{Line: 2, ID: "1", Text: "a", Expected: "x", Answer: "x", Verdict: result.Verdict{Agreement: 1, Confidence: .12345678}, Fields: []result.Field{
			{Name: "customer, id", Value: json.Number("7")}, {Name: "Answer", Value: "=1+1"}, {Name: "paid", Value: true},
			{Name: "price", Value: json.Number("1.50")}, {Name: "address", Value: json.RawMessage("{\n \"city\": \"<B>\"}")},
		}},
		{Line: 3, ID: "2", Text: "b", Answer: "y", Verdict: result.Verdict{Agreement: .5}, Fields: []result.Field{
			{Name: "paid", Value: nil}, {Name: "customer, id", Value: json.Number("8")}, {Name: "price", Value: json.Number("2")},
		}},
		{Line: 4, Text: "bad", Failure: &outcome.Failure{Err: errors.New("it has no text")}},
	}
}

func input(results []outcome.Result) (in Input) {
	for _, r := range results {
		in.Add(source.Row{Label: r.Expected, Fields: r.Fields})
	}
	return in
}

func writeAll(t *testing.T, format string, o Options, results []outcome.Result) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, format, o)
	must.Do(t, err)
	for _, r := range results {
		must.Do(t, errors.Join(w.Write(r), w.Flush()))
	}
	must.Do(t, w.Close())
	return out.Bytes()
}

func TestInputColumns(t *testing.T) {
	results := customers()
	o := Options{Input: input(results)}
	got := map[string]string{
		"whole": string(writeAll(t, JSONL, o, results[:1])),
		"csv":   string(writeAll(t, CSV, o, results)),
	}
	o.Columns = []string{"customer, id", "answer", "input_Answer", "error", "fields", "confidence"}
	got["some"] = string(writeAll(t, JSONL, o, results))
	got["some tsv"] = string(writeAll(t, TSV, o, results))
	o = Options{Input: Input{Open: true, Labels: true}, Columns: []string{"input_answer", "Answer", "price", "none"}}
	got["open"] = string(writeAll(t, CSV, o, results))
	o.Columns = nil
	got["open, whole"] = string(writeAll(t, CSV, o, results[1:]))
	want := map[string]string{
		"whole": `{"id":"1","text":"a","expected":"x","answer":"x","agreement":1,"confidence":0.123457,"flagged":false,"votes":[],` +
			`"fields":{"customer, id":7,"Answer":"=1+1","paid":true,"price":1.50,"address":{"city":"<B>"}}}` + "\n",
		"csv": "id,text,expected,answer,agreement,confidence,unknown,runner_up,flagged,reason,error,citations,candidates,missing,\"customer, id\",input_Answer,paid,price,address\n" +
			"1,a,x,x,1.0000,0.1235,,,false,,,,,,7,=1+1,true,1.50,\"{\"\"city\"\":\"\"<B>\"\"}\"\n" +
			"2,b,,y,0.5000,,,,false,,,,,,8,,,2,\n" +
			",bad,,,0.0000,,,,false,,line 4: it has no text,,,,,,,,\n",
		"some": `{"customer, id":7,"answer":"x","input_Answer":"=1+1","error":null,"fields":{"customer, id":7,"Answer":"=1+1","paid":true,"price":1.50,"address":{"city":"<B>"}},"confidence":0.123457}` + "\n" +
			`{"customer, id":8,"answer":"y","input_Answer":null,"error":null,"fields":{"paid":null,"customer, id":8,"price":2},"confidence":null}` + "\n" +
			`{"customer, id":null,"answer":null,"input_Answer":null,"error":{"line":4,"message":"it has no text"},"fields":null,"confidence":null}` + "\n",
		"some tsv": "customer, id\tanswer\tinput_Answer\terror\tfields\tconfidence\n" +
			"7\tx\t=1+1\t\t" + `{"customer, id":7,"Answer":"=1+1","paid":true,"price":1.50,"address":{"city":"<B>"}}` + "\t0.1235\n" +
			"8\ty\t\t\t" + `{"paid":null,"customer, id":8,"price":2}` + "\t\n" +
			"\t\t\tline 4: it has no text\t\t\n",
		"open": "input_answer,Answer,price,none\n,=1+1,1.50,\n,,2,\n,,,\n",
		"open, whole": "id,text,expected,answer,agreement,confidence,unknown,runner_up,flagged,reason,error,citations,candidates,missing,fields\n" +
			"2,b,,y,0.5000,,,,false,,,,,,\"{\"\"paid\"\":null,\"\"customer, id\"\":8,\"\"price\"\":2}\"\n" +
			",bad,,,0.0000,,,,false,,line 4: it has no text,,,,\n",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestUnknownColumns(t *testing.T) {
	in := input(customers())
	for name, test := range map[string]struct {
		columns []string
		in      Input
		want    string
	}{
		"unknown": {[]string{"id", "custommer"}, in, `there is no column "custommer": name some of id, text, expected, answer, agreement, confidence, unknown, runner_up, flagged, reason, error, citations, candidates, missing, decided, votes, fields, "customer, id", input_Answer, paid, price, address`},
		"twice":   {[]string{"id", "id"}, in, `the column "id" is named twice`},
		"empty":   {[]string{""}, Input{Open: true}, `there is no column ""`},
		"none":    {[]string{}, in, "name at least one column"},
	} {
		for _, format := range []string{JSONL, TSV, CSV, Parquet} {
			if _, err := NewWriter(io.Discard, format, Options{Columns: test.columns, Input: test.in}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, %s: %v", name, format, err)
			}
		}
	}
}

// TestCSVReads: hostile texts are read back unchanged, also from a single column.
func TestCSVReads(t *testing.T) {
	texts := []string{"", "a,b", "\"", "line\nend", " space ", "\t", "=cmd|' /C calc'!A0", "\\.", "é\u2028", "a\x00b"}
	for _, columns := range [][]string{{"text"}, {"text", "id"}} {
		var results []outcome.Result
		for _, text := range texts {
			results = append(results, outcome.Result{ID: text, Text: text})
		}
		in := csv.NewReader(bytes.NewReader(writeAll(t, CSV, Options{Columns: columns}, results)))
		records, err := in.ReadAll()
		if err != nil || len(records) != len(texts)+1 {
			t.Fatalf("%d records, %v", len(records), err)
		}
		for i, text := range texts {
			for _, cell := range records[i+1] {
				if cell != text {
					t.Errorf("%q reads as %q", text, cell)
				}
			}
		}
	}
}

// TestParquet: the values of an input column determine its type.
func TestParquet(t *testing.T) {
	results := customers()
	results[1].Fields = append(results[1].Fields, result.Field{Name: "mixed", Value: json.Number("1")}, result.Field{Name: "big", Value: json.Number("9007199254740993")})
	results[0].Fields = append(results[0].Fields, result.Field{Name: "mixed", Value: false})
	content := writeAll(t, Parquet, Options{Input: input(results)}, results)
	file, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	must.Do(t, err)
	types := map[string]string{}
	var names []string
	for _, f := range file.Schema().Fields() {
		names = append(names, f.Name())
		types[f.Name()] = f.Type().String()
	}
	if got, want := strings.Join(names[len(names)-7:], " "), "customer, id input_Answer paid price address mixed big"; got != want {
		t.Errorf("columns %q, want %q", got, want)
	}
	for name, want := range map[string]string{
		"id": "STRING", "agreement": "DOUBLE", "flagged": "BOOLEAN", "error": "STRING", "customer, id": "INT(64,true)", "input_Answer": "STRING",
		"paid": "BOOLEAN", "price": "DOUBLE", "address": "STRING", "mixed": "STRING", "big": "INT(64,true)",
	} {
		if types[name] != want {
			t.Errorf("%s is %s, want %s", name, types[name], want)
		}
	}
	rows := make([]parquet.Row, 4)
	r := file.RowGroups()[0].Rows()
	n, err := r.ReadRows(rows)
	if n != 3 || err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("%d rows, %v", n, err)
	}
	var got []string
	for _, row := range rows[:n] {
		var cells []string
		for _, v := range row {
			cells = append(cells, v.String())
		}
		got = append(got, strings.Join(cells, "|"))
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	none := "<null>"
	if d := cmp.Diff([]string{
		`1|a|x|x|1|0.123457|<null>|<null>|false|<null>|<null>|<null>|<null>|<null>|7|=1+1|true|1.5|{"city":"<B>"}|false|` + none,
		`2|b|<null>|y|0.5|<null>|<null>|<null>|false|<null>|<null>|<null>|<null>|<null>|8|<null>|<null>|2|<null>|1|9007199254740993`,
		`|bad|<null>|<null>|0|<null>|<null>|<null>|false|<null>|line 4: it has no text|<null>|<null>|<null>|<null>|<null>|<null>|<null>|<null>|<null>|` + none,
	}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestKinds: a column gets a type that can hold all its values, or text.
func TestKinds(t *testing.T) {
	n := func(s string) any { return json.Number(s) }
	for _, test := range []struct {
		values []any
		want   kind
	}{
		{nil, unknown}, {[]any{nil, nil}, unknown}, {[]any{nil, true}, truth}, {[]any{true, "x"}, text}, {[]any{true, n("1")}, text},
		{[]any{n("1"), n("-2")}, small}, {[]any{n("1"), n("9007199254740993")}, whole}, {[]any{n("1"), n("1.5")}, number},
		{[]any{n("1.5"), n("9007199254740993")}, text}, {[]any{n("9223372036854775808")}, text}, {[]any{n("1e999")}, text},
		{[]any{json.RawMessage("[]")}, text}, {[]any{"1"}, text}, {[]any{n("1.5"), nil}, number},
	} {
		for range 2 {
			k := unknown
			for _, v := range test.values {
				k = k.and(kindOf(v))
			}
			if k != test.want {
				t.Errorf("%v: %v, want %v", test.values, k, test.want)
			}
			for i, j := 0, len(test.values)-1; i < j; i, j = i+1, j-1 { // also in reverse order
				test.values[i], test.values[j] = test.values[j], test.values[i]
			}
		}
	}
}

// TestManyColumns: the number of columns is bounded if keys are data.
func TestManyColumns(t *testing.T) {
	var in Input
	for i := range maxColumns + 10 {
		in.Add(source.Row{Fields: []result.Field{{Name: strings.Repeat("k", i+1), Value: "v"}}})
	}
	if len(in.Columns) != maxColumns || !in.Open {
		t.Errorf("%d columns, open: %v", len(in.Columns), in.Open)
	}
}

func TestCompression(t *testing.T) {
	results := customers()
	plain := writeAll(t, JSONL, Options{}, results)
	for compression, open := range map[string]func(io.Reader) (io.Reader, error){
		gz:  func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		zst: func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	} {
		packed := writeAll(t, JSONL, Options{Compression: compression}, results)
		r, err := open(bytes.NewReader(packed))
		must.Do(t, err)
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s reads as %q, %v", compression, got, err)
		}
	}
	if _, err := NewWriter(io.Discard, Parquet, Options{Compression: gz}); err == nil || !strings.Contains(err.Error(), "leave that out of the name") {
		t.Errorf("compressed Parquet: %v", err)
	}
}

func TestNamed(t *testing.T) {
	for name, want := range map[string][2]string{
		"a.jsonl": {JSONL, ""}, "a.NDJSON": {JSONL, ""}, "a/b.tsv": {TSV, ""}, "a.Csv.gz": {CSV, gz}, "a.jsonl.zst": {JSONL, zst}, "a.parquet": {Parquet, ""},
		"a.txt": {}, "a": {}, "a.gz": {"", gz}, "a.csv.bz2": {}, "": {}, "csv": {}, "a.table": {}, "a.json": {},
	} {
		if format, compression := Named(name); format != want[0] || compression != want[1] {
			t.Errorf("%s: %q %q, want %q", name, format, compression, want)
		}
	}
}
