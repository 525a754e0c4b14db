package scaffold

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/pipelines"
)

// pair is a text with its label.
type pair struct{ Text, Label string }

// pairs returns the content of most files below.
func pairs() (all []pair) {
	for i := range 6 {
		all = append(all, pair{fmt.Sprintf("where is the parcel number %d of mine", i), "order"}, pair{fmt.Sprintf("send the money back for café %d", i), "refund"})
	}
	return all
}

// lines formats each pair, with text, label and number.
func lines(head, format string) string {
	for i, p := range pairs() {
		head += written(format, p, i)
	}
	return head
}

// written formats a pair with some of text, label and number.
func written(format string, p pair, i int) string {
	text, _, _ := strings.Cut(fmt.Sprintf(format, p.Text, p.Label, i), "%!(EXTRA")
	return text
}

// array formats each pair as an element.
func array(before, format, after string) string {
	return before + strings.TrimSuffix(lines("", format+","), ",") + after
}

// sheet is a sheet of a workbook, with rows above the pairs.
func sheet(above ...[]any) [][]any {
	for _, p := range pairs() {
		above = append(above, []any{p.Text, "x", p.Label})
	}
	return above
}

type tab struct {
	name string
	rows [][]any
}

func book(t *testing.T, tabs ...tab) string {
	return bookWith(t, func(*excelize.File) error { return nil }, tabs...)
}

// merges and formulas change the first sheet of a book. merges merges pairs of cells: the first with the second, and so
// on. formulas puts a formula without a value into each cell.
func merges(cells ...string) func(*excelize.File) error {
	return func(f *excelize.File) (err error) {
		for i := 0; i < len(cells); i += 2 {
			err = errors.Join(err, f.MergeCell(f.GetSheetName(0), cells[i], cells[i+1]))
		}
		return err
	}
}

func formulas(cells string) func(*excelize.File) error {
	return func(f *excelize.File) (err error) {
		for cell := range strings.FieldsSeq(cells) {
			err = errors.Join(err, f.SetCellValue(f.GetSheetName(0), cell, nil), f.SetCellFormula(f.GetSheetName(0), cell, "A1"))
		}
		return err
	}
}

func bookWith(t *testing.T, change func(*excelize.File) error, tabs ...tab) string {
	t.Helper()
	f := excelize.NewFile()
	defer f.Close()
	for i, s := range tabs {
		if i == 0 {
			if err := f.SetSheetName("Sheet1", s.name); err != nil {
				t.Fatal(err)
			}
		} else if _, err := f.NewSheet(s.name); err != nil {
			t.Fatal(err)
		}
		for j, row := range s.rows {
			if err := f.SetSheetRow(s.name, fmt.Sprintf("A%d", j+1), &row); err != nil {
				t.Fatal(err)
			}
			if len(row) == 1 && j == 0 {
				if err := f.MergeCell(s.name, "A1", "C1"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := change(f); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func parquetOf[T any](t *testing.T, rows []T, metadata string) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b)
	if metadata != "" {
		w.SetKeyValueMetadata("huggingface", metadata)
	}
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zipped(t *testing.T, names ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		if _, err := w.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

type plainRow struct {
	Utterance string `parquet:"utterance"`
	Intent    string `parquet:"intent"`
}

type classRow struct {
	Text  string `parquet:"text"`
	Label int64  `parquet:"label"`
}

// fromFile returns the rows that a run reads by the pipeline file: rows of the knowledge and of the input.
func fromFile(t *testing.T, p *Plan) (all []pair) {
	t.Helper()
	for path, rows := range p.Rows {
		if err := os.WriteFile(path, rows, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	file, diags := pipeline.Load(t.Context(), "pipeline.hcl", pipeline.Options{Dir: wd, Text: p.File, Catalog: enginetest.Catalog{}, Getenv: func(string) (string, bool) { return "", false }})
	for _, d := range diags {
		if !strings.Contains(d.Summary, "stage") && d.Subject != nil && !strings.HasPrefix(d.Summary, "Unknown") {
			t.Errorf("%s: %s\n%s", d.Summary, d.Detail, p.File)
		}
	}
	if len(file.Knowledge) == 0 || len(file.Knowledge[0].Sources) == 0 {
		t.Fatalf("%v\n%s", diags, p.File)
	}
	sources := file.Knowledge[0].Sources
	if len(file.Pipelines) > 0 && file.Pipelines[0].Input != nil {
		sources = append(sources, *file.Pipelines[0].Input)
	}
	for _, s := range sources {
		if s.Documents != nil || s.Reviewed {
			continue
		}
		in, err := s.Open(nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, p.File)
		}
		defer in.Close()
		for {
			row, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err = errors.Join(err, row.Err); err != nil {
				t.Fatalf("%v\n%s", err, p.File)
			}
			all = append(all, pair{row.Text, row.Label})
		}
	}
	return all
}

// Typical files of users. Each is read correctly, causes a question, or is refused with what to type. No wrong file is
// written.
func TestFilesOfPeople(t *testing.T) {
	const right, asked, refused = "right", "asked", "refused"
	var packed, unlabelled bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, lines("text,label\n", "%q,%s\n"))
	_ = w.Close()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var table []plainRow
	var classes []classRow
	labelled := map[string]map[string]any{"text": {}, "label": {}}
	folders := map[string]string{"data/README": "texts by label"}
	for i, p := range pairs() {
		table, classes = append(table, plainRow{p.Text, p.Label}), append(classes, classRow{p.Text, int64(i % 2)})
		labelled["text"][fmt.Sprint(i)], labelled["label"][fmt.Sprint(i)] = p.Text, p.Label
		fmt.Fprintln(&unlabelled, p.Text)
		folders[fmt.Sprintf("data/%s/%d.txt", p.Label, i)] = p.Text
	}
	text := func(value any) string {
		all, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
	encoded := func(s string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	half := func(from, to int, format string) (all string) {
		for i, p := range pairs()[from:to] {
			all += written(format, p, i)
		}
		return all
	}
	csv, head := lines("text,label\n", "%q,%s\n"), []any{"text", "lang", "label"}
	long, merged := [][]any{head}, [][]any{head}
	for i, p := range pairs() {
		long = append(long, []any{p.Text, "x", 900000000000207001 + i%2})
		merged = append(merged, []any{p.Text, "x", nil})
		if i%3 == 0 {
			merged[i+1][2] = []string{"order", "refund"}[i/3%2]
		}
	}
	names := `{"info": {"features": {"text": {"dtype": "string", "_type": "Value"}, "label": {"names": ["order", "refund"], "_type": "ClassLabel"}}}}`
	rasa := func(intent string) string {
		all := "- intent: " + intent + "\n  examples: |\n"
		for _, p := range pairs() {
			if p.Label == intent {
				all += "    - " + strings.Replace(p.Text, "parcel", `[parcel]{"entity": "thing"}`, 1) + "\n"
			}
		}
		return all
	}
	nlu := "version: \"3.1\"\nnlu:\n" + rasa("order") + "- synonym: parcel\n  examples: |\n    - packet\n" + rasa("refund")
	markdown := half(4, 5, "- %s\r\n") + half(6, 7, "- %s\n") + half(8, 9, "- %s\n") + half(10, 11, "+ [%s]{\"entity\": \"thing\"}\n") + "\n## synonym:parcel\n- packet\n\n## lookup:plates\nplates.txt\n\n## regex:zip\n- \\d+\n\n##  intent: refund\n" +
		half(1, 2, "- %s\n") + half(3, 4, "- %s\n") + half(5, 6, "- %s\n") + half(7, 8, "- %s\n") + half(9, 10, "- %s\n") + half(11, 12, "- %s\n") + "## intent:greet\n"
	byLabel := func(label string) (all []string) {
		for _, p := range pairs() {
			if p.Label == label {
				all = append(all, p.Text)
			}
		}
		return all
	}
	tests := []struct {
		name    string // of the only file, and of the case
		content string
		files   map[string]string // in place of content
		data    string            // given path; empty: the file
		columns map[string]string
		how     How
		outcome string // empty: right
		says    string // part of an error, of the description or of the plan
		want    []pair // in place of pairs
		texts   bool   // there are no labels
	}{
		// Tables.
		{name: "tabs.tsv", content: lines("text\tlabel\n", "%s\t%s\n")},
		{name: "quoted.csv", content: csv},
		{name: "semicolons.csv", content: lines("label;text\n", "%[2]s;%[1]s\n")},
		{name: "tabs.csv", content: lines("text\tlabel\n", "%s\t%s\n")},
		{name: "bars.csv", content: lines("text|label\n", "%s|%s\n")},
		{name: "tildes.csv", content: lines("text~label\n", "%s~%s\n"), how: How{Form: source.Form{Delimiter: "~"}}},
		{name: "windows.csv", content: "\uFEFF" + strings.ReplaceAll(csv, "\n", "\r\n")},
		{name: "unicode-text.txt", content: encoded(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(lines("text\tlabel\n", "%s\t%s\n")))},
		{name: "latin-1.csv", content: encoded(charmap.ISO8859_1.NewEncoder().String(csv)), says: "windows-1252"},
		{name: "old-mac.tsv", content: strings.ReplaceAll(lines("text\tlabel\n", "%s\t%s\n"), "\n", "\r")},
		{name: "packed.csv.gz", content: packed.String()},
		{name: "packed.csv.zst", content: string(z.EncodeAll([]byte(csv), nil))},
		{name: "lines.jsonl", content: lines("", `{"id": %[3]d, "text": %[1]q, "label": %[2]q}`+"\n")},
		{name: "array.json", content: array("[", `{"text": %q, "label": %q}`, "]")},
		{name: "nested.jsonl", content: lines("", `{"data": {"utterance": %q, "intent": %q}}`+"\n")},
		{name: "in-an-object.json", content: array(`{"version": 1, "items": [`, `{"text": %q, "label": %q}`, "]}")},
		{name: "lines.json", content: lines("", `{"text": %q, "label": %q}`+"\n")},
		{name: "table.parquet", content: parquetOf(t, table, "")},
		{name: "book.xlsx", content: book(t, tab{"Sheet1", sheet(head)})},
		{name: "no-header.tsv", content: lines("", "%s\t%s\n"), says: "called by their numbers"},
		{name: "no-header.csv", content: lines("", "%[3]d,%[1]q,%[2]s\n"), says: "called by their numbers"},
		{name: "only-texts.csv", content: "text\n" + unlabelled.String(), texts: true},
		{name: "only-texts.jsonl", content: lines("", `{"text": %q}`+"\n"), texts: true},
		{name: "empty.csv", outcome: refused, says: "the file is empty"},
		{name: "header-only.csv", content: "text,label\n", outcome: refused, says: "no usable row"},
		{name: "same-names.csv", content: lines("text,text,label\n", "%q,x,%s\n"), outcome: refused, says: "rename one of them"},
		// Tables as pandas, Excel and Hugging Face write them.
		{name: "index.csv", content: lines(",text,label\n", "%[3]d,%[1]q,%[2]s\n")},
		{name: "index-of-words.csv", content: lines(",utterance,intent\n", "row-%[3]d,%[1]q,%[2]s\n")},
		{name: "sep.csv", content: lines("sep=;\r\ntext;label\r\n", "%s;%s\r\n")},
		{name: "sep-bar.csv", content: lines("sep=|\ntext|label\n", "%s|%s\n")},
		{name: "to_json.json", content: text(labelled), outcome: refused, says: "orient='records', lines=True"},
		{name: "to_json-table.json", content: array(`{"schema": {"fields": [{"name": "text"}]}, "data": [`, `{"index": %[3]d, "text": %[1]q, "label": %[2]q}`, "]}")},
		{name: "to_json-index.json", content: array("{", `"%[3]d": {"text": %[1]q, "label": %[2]q}`, "}"), outcome: refused, says: "orient='records', lines=True"},
		{name: "to_dict-list.json", content: array(`{"text": [`, "%q", "]") + array(`, "label": [`, "%[2]q", "]}"), outcome: refused, says: "orient='records', lines=True"},
		{name: "by-label.json", content: text(map[string]any{"order": byLabel("order"), "refund": byLabel("refund")}), outcome: refused, says: "orient='records', lines=True"},
		{name: "a folder of shards", files: map[string]string{"d/train-00000-of-00001.parquet": parquetOf(t, table[:8], ""), "d/test-00000-of-00001.parquet": parquetOf(t, table[8:], "")}, data: "d", says: "d/*.parquet: 12 rows"},
		{name: "class-labels.parquet", content: parquetOf(t, classes, names)},
		{name: "class-labels-of-others.parquet", content: parquetOf(t, classes, "{"), want: numbered()},
		{name: "read-me-first.xlsx", content: book(t, tab{"Read me", [][]any{{"Tickets of the year"}, {"Ask Ann about them"}}}, tab{"Tickets", sheet(head)}), outcome: refused, says: "--sheet 'Read me' or --sheet Tickets"},
		{name: "title.xlsx", content: book(t, tab{"A", sheet([]any{"Tickets of the year"}, []any{}, head)}), outcome: refused, says: "--header ROW says in which row"},
		{name: "two-headers.xlsx", content: book(t, tab{"A", sheet([]any{"Ticket", "", "Class"}, head)}), outcome: refused, says: "--header ROW says in which row"},
		{name: "title-given.xlsx", content: book(t, tab{"A", sheet([]any{"a", "b", "c"}, head)}), how: How{Form: source.Form{HeaderRow: 2}}},
		{name: "two-tables.xlsx", content: book(t, tab{"2023", sheet(head)}, tab{"2024", sheet(head)}), outcome: refused, says: "--sheet 2023 or --sheet 2024"},
		{name: "two-tables-given.xlsx", content: book(t, tab{"2023", sheet(head)}, tab{"2024", sheet(head)}), how: How{Form: source.Form{Sheet: "2024"}}},
		{name: "train-and-test.xlsx", content: book(t, tab{"train", sheet(head)[:9]}, tab{"test", slices.Concat([][]any{head}, sheet(head)[9:])}), outcome: refused, says: "--sheet train or --sheet test"},
		{name: "long-numbers.xlsx", content: book(t, tab{"A", long}), want: changed(func(i int, p *pair) { p.Label = fmt.Sprint(900000000000207001 + i%2) })},
		{name: "merged.xlsx", content: bookWith(t, merges("C2", "C4", "C5", "C7", "C8", "C10", "C11", "C13"), tab{"A", merged}), says: "(rows below the first: 8)",
			want: changed(func(i int, p *pair) { p.Label = []string{"order", "refund"}[i/3%2] })},
		{name: "formulas.xlsx", content: bookWith(t, formulas("C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13"), tab{"A", sheet(head)}), outcome: refused, says: "has no value"},
		{name: "formulas-without-a-usual-name.xlsx", content: bookWith(t, formulas("C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13"), tab{"A", sheet([]any{"text", "lang", "what"})}), outcome: refused, says: "open the file in Excel or LibreOffice and save it"},
		{name: "formulas-in-all.xlsx", content: bookWith(t, formulas("A2 C2 A3 C3 A4 C4 A5 C5"), tab{"A", [][]any{head}}), outcome: refused, says: "has no value"},
		{name: "formulas-beside.xlsx", content: bookWith(t, formulas("B2 B3 B4"), tab{"A", sheet(head)}), says: `formulas in column "lang" have no value`},
		{name: "lines-above.csv", content: "Export of tickets\nof the year 2024\n\n" + csv, outcome: refused, says: "--header ROW says in which row"},
		{name: "doctor.csv", content: "message,team,doctor_action,doctor_label\n" + half(0, 8, "%q,%s,,\n") + half(8, 12, "%q,%s,review,other\n")},
		{name: "split.csv", content: "text,label,split\n" + half(0, 8, "%q,%s,train\n") + half(8, 12, "%q,%s,test\n")},
		{name: "split.jsonl", content: half(0, 8, `{"text": %q, "label": %q, "subset": "training"}`+"\n") + half(8, 12, `{"text": %q, "label": %q, "subset": "val"}`+"\n")},
		{name: "split-of-texts.csv", content: "text,split\n" + half(0, 8, "%q,train\n") + half(8, 12, "%q,test\n"), texts: true},
		{name: "a folder of Spark", files: map[string]string{"d/_SUCCESS": "", "d/._SUCCESS.crc": "\x00", "d/part-0.snappy.parquet": parquetOf(t, table[:4], ""), "d/part-1.snappy.parquet": parquetOf(t, table[4:], "")}, data: "d"},
		{name: "train-and-test.json", content: `{"train": [` + strings.TrimSuffix(half(0, 8, `{"text": %q, "label": %q},`), ",") + `], "test": [` + strings.TrimSuffix(half(8, 12, `{"text": %q, "label": %q},`), ",") + "]}", outcome: refused, says: "--sheet train or --sheet test"},
		{name: "tables.json", content: array(`{"a": [`, `{"text": %q, "label": %q}`, "]") + array(`, "b": [`, `{"text": %q, "label": %q}`, "]}"), outcome: refused, says: "2 tables: say which one counts, with --sheet a or --sheet b"},
		{name: "tables-given.json", content: array(`{"a": [`, `{"text": %q, "label": %q}`, "]") + array(`, "b": [`, `{"text": %q, "label": %q}`, "]}"), how: How{Form: source.Form{Sheet: "b"}}},
		// Files of annotation tools and of chatbots.
		{name: "label-studio.json", content: array("[", `{"id": %[3]d, "data": {"text": %[1]q}, "annotations": [{"result": [{"from_name": "sentiment", "value": {"choices": [%[2]q]}}]}]}`, "]"), says: "label-studio.rows.jsonl"},
		{name: "label-studio-several.json", content: array("[", `{"id": 1, "data": {"text": %q}, "annotations": [{"result": [{"from_name": "topic", "value": {"choices": [%q, "x"]}}]}]}`, "]"), want: suffixed("; x"), says: "--column 'label=topic[0]'"},
		{name: "label-studio-min.json", content: array("[", `{"id": %[3]d, "text": %[1]q, "sentiment": %[2]q, "annotator": 1, "lead_time": %[3]d.5}`, "]")},
		{name: "chat.jsonl", content: lines("", `{"messages": [{"role": "system", "content": "You sort tickets."}, {"role": "user", "content": %q}, {"role": "assistant", "content": %q}]}`+"\n")},
		{name: "chat-by-path.jsonl", content: lines("", `{"messages": [{"role": "user", "content": %q}, {"role": "assistant", "content": %q}]}`+"\n"), how: How{Form: source.Form{Format: source.JSONL}}, columns: map[string]string{"text": "messages[0].content", "label": "messages[1].content"}},
		{name: "sharegpt.json", content: array("[", `{"id": "%[3]d", "conversations": [{"from": "human", "value": %[1]q}, {"from": "gpt", "value": %[2]q}]}`, "]")},
		{name: "prompt-completion.jsonl", content: lines("", `{"prompt": %q, "completion": %q}`+"\n")},
		{name: "alpaca.json", content: array("[", `{"instruction": "Sort this ticket.", "input": %q, "output": %q}`, "]")},
		{name: "prodigy.jsonl", content: lines("", `{"text": %q, "label": %q, "_task_hash": 1, "answer": "accept"}`+"\n") + `{"text": "no", "label": "order", "_task_hash": 1, "answer": "reject"}`},
		{name: "prodigy-choice.jsonl", content: lines("", `{"text": %q, "options": [{"id": "order"}, {"id": "refund"}], "accept": [%q], "answer": "accept"}`+"\n")},
		{name: "prodigy-several.jsonl", content: lines("", `{"text": %q, "options": [{"id": "order"}], "accept": [%q, "x"], "answer": "accept"}`+"\n"), want: suffixed("; x"), says: "--column 'label=label[0]'"},
		{name: "spacy.jsonl", content: strings.NewReplacer(`"order": 1`, `"order": 1.0, "refund": 0.0`, `"refund": 1`, `"order": 0.0, "refund": 1.0`).Replace(lines("", `{"text": %q, "cats": {%q: 1}}`+"\n"))},
		{name: "spacy-several.jsonl", content: lines("", `{"text": %q, "cats": {%q: 1, "x": true}}`+"\n"), want: suffixed("; x"), says: "rows have several labels, and so do answers"},
		{name: "nlu.yml", content: nlu, says: "nlu.rows.jsonl"},
		{name: "nlu.json", content: array(`{"rasa_nlu_data": {"regex_features": [], "common_examples": [`, `{"text": %q, "intent": %q, "entities": []}`, "]}}")},
		{name: "fasttext.txt", content: lines("", "__label__%[2]s %[1]s\n")},
		{name: "fasttext-several.txt", content: lines("", "__label__%[2]s __label__x %[1]s\n"), want: suffixed("; x"), says: "several labels"},
		{name: "intents.json", content: text(map[string]any{"intents": []any{map[string]any{"tag": "order", "patterns": byLabel("order"), "responses": []string{"ok"}}, map[string]any{"tag": "refund", "patterns": byLabel("refund")}}})},
		{name: "folders", files: folders, data: "data", says: "data.rows.jsonl"},
		{name: "a folder of documents", files: map[string]string{"d/a/x.md": english, "d/b/y.md": english}, data: "d", want: []pair{}},
		{name: "agent.zip", content: zipped(t, "agent.json", "intents/order_usersays_en.json"), outcome: refused, says: "unpack it and name the file in it"},
		{name: "luis.json", content: array(`{"luis_schema_version": "7", "intents": [{"name": "order"}, {"name": "refund"}], "utterances": [`, `{"text": %q, "intent": %q, "entities": []}`, "]}"), outcome: refused, says: "--sheet intents or --sheet utterances"},
		// Other content in these files: it is read, or counted.
		{name: "fasttext-tabs.txt", content: lines("", "__label__%[2]s\t%[1]s\n")},
		{name: "fasttext-blanks.txt", content: lines("", "  __label__%[2]s\u00a0 %[1]s\r\n")},
		{name: "fasttext-commas.txt", content: lines("", "__label__%[2]s,%[1]s\n")},
		{name: "fasttext-commas-behind.txt", content: lines("", "__label__%[2]s, %[1]s\n")},
		{name: "fasttext-names-with-commas.txt", content: lines("", "__label__%[2]s %[1]s\n") + "__label__arts,crafts one\n__label__arts,crafts two\n", want: append(pairs(), pair{"one", "arts,crafts"}, pair{"two", "arts,crafts"})},
		{name: "fasttext-either.txt", content: lines("", "__label__%[2]s %[1]s\n") + "__label__order,where is it\n", outcome: asked, says: `"order,where" is a label with a comma, or the label "order" with a text`},
		{name: "fasttext-last.txt", content: lines("", "%[1]s __label__%[2]s\n") + "nothing\n", says: "left out: 1 line without a label"},
		{name: "fasttext-in-a-row.txt", content: lines("", "__label__%[2]s,__label__x\t%[1]s\n"), want: suffixed("; x")},
		{name: "fasttext.csv", content: lines("", "__label__%[2]s %[1]s\n")},
		{name: "fasttext.tsv", content: lines("", "__label__%[2]s\t%[1]s\n")},
		{name: "fasttext-quoted.csv", content: lines("", "__label__%[2]s,%[1]q\n"), want: prefixed("__label__")},
		{name: "nlu-list.yml", content: "nlu:\n- intent: order\n  examples: " + text(byLabel("order")) + "\n- intent: refund\n  examples:\n" + half(1, 2, "  - text: >\n      %s\n    metadata: {a: 1}\n") + half(3, 4, "  - %s\n") + half(5, 6, "  - text: |-\n      %s\n") + half(7, 8, "  - %s\n") + half(9, 10, "  - '%s'\n") + half(11, 12, "  - %s # c\n"), says: "left out: 1 value beside the texts of examples"},
		{name: "nlu-folded.yml", content: strings.ReplaceAll(nlu, "|", ">-") + "- regex: zip\n  examples: |\n    - \\d+\n- intent: greet\nstories:\n- story: a\n", says: "left out: 1 intent without a phrase, 6 marks of entities, 1 regular expression, 1 section stories, 1 synonym"},
		{name: "nlu-broken.yml", content: "nlu:\n- intent: order\n  examples:\n  - a\n\t- b\n", outcome: refused, says: "found a tab character"},
		{name: "nlu-rest.json", content: array(`{"rasa_nlu_data": {"regex_features": [{}], "entity_synonyms": [{}, {}], "common_examples": [`, `{"text": %q, "intent": %q}`, "]}}"), says: "left out: 1 regular expression, 2 synonyms"},
		{name: "label-studio-rest.json", content: array("[", `{"data": {"text": %[1]q, "meta": {"a": NaN}}, "predictions": [{}], "annotations": [{"was_cancelled": true, "result": [{"from_name": "s", "value": {"choices": ["y"]}}]}, {"result": []}, {"result": [{"from_name": "s", "value": {"choices": [%[2]q]}}]}, {"result": [{"from_name": "s", "value": {"choices": ["z"]}}, {"value": {"text": "x"}}]}]}`, "]"), says: "left out: 12 annotation results without a choice, 12 annotations without a choice, 12 cancelled annotations, 12 further annotations unlike the first of the text, 12 lists or objects in meta, 12 predictions"},
		{name: "prodigy-rest.jsonl", content: lines("", `{"text": %q, "label": %q, "_task_hash": 1, "answer": "accept"}`+"\n") + "{broken\n" + lines("", `{"text": %q, "label": "x", "_task_hash": 1, "spans": [1], "answer": "accept"}`+"\n"), want: append(pairs(), changed(func(_ int, p *pair) { p.Label = "x" })...), says: "left out: 1 line that cannot be read as JSON, 12 lists or objects in spans\n  12 rows have the text of an earlier row, and another label"},
		{name: "prodigy-answers.jsonl", content: lines("", `{"text": %q, "label": %q, "_task_hash": 1, "answer": "accept"}`+"\n") + `{"text": "no", "label": "order", "_task_hash": 1, "answer": "reject"}` + "\n" + `{"text": "no", "label": "order", "_task_hash": 1, "answer": "ignore"}`, says: "left out: 1 text with the answer ignore, 1 text with the answer reject"},
		{name: "prodigy-none.jsonl", content: lines("", `{"text": %q, "label": %q, "_task_hash": 1, "answer": "reject"}`+"\n"), outcome: refused, says: "no text was accepted (left out: 12 texts with the answer reject)"},
		{name: "first-line-broken.jsonl", content: "{broken\n" + lines("", `{"messages": [{"role": "user", "content": [{"text": %q}, {"image_url": "x"}]}, {"role": "assistant", "content": %q}]}`+"\n"), says: "left out: 1 line that cannot be read as JSON, 12 parts of messages without text"},
		{name: "doccano-spans.jsonl", content: lines("", `{"text": %q, "label": [[0, 5, %q]]}`+"\n"), outcome: asked, says: "lists of lists"},
		{name: "chat-rest.jsonl", content: lines("", `{"messages": [{"role": "user", "content": "hello"}, {"role": "user", "content": %q}, {"role": "assistant", "content": %q}]}`+"\n"), says: "left out: 12 questions before the last one of a chat"},
		{name: "nlu.md", content: "<!-- texts -->\n## intent:order\n" + half(0, 1, "- %s\n") + half(2, 3, "* [%s](thing:parcel)\n") + markdown, says: "left out: 1 intent without a phrase, 1 lookup table, 2 marks of entities, 1 regular expression, 1 synonym"},
		{name: "nlu-and-stories.md", content: "# NLU\n## intent:order\n" + half(0, 1, "- %s\n") + half(2, 3, "- %s\n") + strings.ReplaceAll(markdown, "## intent:greet\n", "## happy path\n* order\n  - utter_greet\n"), says: "1 item of another kind"},
		{name: "prose.md", content: "## intent: what we want\n" + strings.Repeat("It sorts.\n", 4) + "- quickly\n- well\n", want: []pair{}},
		{name: "tutorial.md", content: english + "\n```\n## intent:order\n- where\n## intent:refund\n- money\n```\n", want: []pair{}},
		{name: "a project of Rasa", files: map[string]string{"d/data/nlu.yml": nlu, "d/domain.yml": "intents:\n- order\n", "d/config.yml": "language: en\n", "d/README.md": english}, data: "d", outcome: refused, says: "d holds training data of Rasa, in d/data/nlu.yml: name such a file"},
		{name: "a glob of Rasa", files: map[string]string{"nlu/a.yml": nlu, "nlu/b.yml": nlu}, data: "nlu/*.yml", outcome: refused, says: "in nlu/a.yml, nlu/b.yml: name such a file"},
		{name: "a folder as Rasa", files: map[string]string{"d/domain.yml": "intents:\n- order\n"}, data: "d", how: How{As: "rasa"}, outcome: refused, says: "d has not the form rasa: it does not hold intents with examples"},
		{name: "a glob of documents as Rasa", files: map[string]string{"d/domain.yml": "intents:\n- order\n"}, data: "d/*.yml", how: How{As: "rasa"}, outcome: refused, says: "domains and stories have none"},
		{name: "domain.yml", content: "intents:\n- order\n", how: How{As: "rasa"}, outcome: refused, says: "domain.yml has not the form rasa"},
		{name: "a folder of fastText", files: map[string]string{"d/train.txt": lines("", "__label__%[2]s %[1]s\n"), "d/readme.txt": english}, data: "d", outcome: refused, says: "d holds lines of fastText, in d/train.txt"},
		{name: "fasttext-class.txt", content: lines("", "__class__%[2]s %[1]s\n"), outcome: refused, says: "its labels begin with __class__, as by the option -label of fastText: write them with __label__"},
		{name: "fasttext-words.txt", content: lines("", "__topic_name__%[2]s, %[1]s\n"), outcome: refused, says: "its labels begin with __topic_name__"},
		{name: "fasttext-capitals.train", content: "a line without\n" + lines("", "%[1]s __LABEL__%[2]s\n"), outcome: refused, says: "sed 's/__LABEL__/__label__/g'"},
		{name: "fasttext-class-given.md", content: lines("", "__class__%[2]s %[1]s\n"), how: How{As: "fasttext"}, outcome: refused, says: "its labels begin with __class__"},
		{name: "python.txt", content: "def __init__(self):\n    self.__dict__ = {}\n" + english, want: []pair{}},
		{name: "fasttext-no-text.txt", content: "__label__order \n__label__refund\n" + lines("", "__label__%[2]s %[1]s\n"), says: "left out: 2 lines without text\n  text"},
		{name: "fasttext-twice.txt", content: lines("", "__label__%[2]s __label__%[2]s %[1]s\n")},
		{name: "fasttext-no-texts.txt", content: lines("", "__label__%[2]s\n"), outcome: refused, says: "but it has 12 lines without text"},
		// Several tables, and other content that Excel leaves beside them.
		{name: "a glob of books with two tables", files: map[string]string{"d/a.xlsx": book(t, tab{"A", sheet(head)}), "d/b.xlsx": book(t, tab{"2023", sheet(head)}, tab{"2024", sheet(head)})}, data: "d/*.xlsx", outcome: refused, says: "d/b.xlsx has 2 tables: say which one counts, with --sheet 2023 or --sheet 2024"},
		{name: "a folder of a book with two tables", files: map[string]string{"d/b.xlsx": book(t, tab{"2023", sheet(head)}, tab{"2024", sheet(head)})}, data: "d", outcome: refused, says: "d/b.xlsx has 2 tables"},
		{name: "a glob of a book with two tables, one given", files: map[string]string{"d/b.xlsx": book(t, tab{"2023", sheet(head)}, tab{"2024", sheet(head)})}, data: "d/*.xlsx", how: How{Form: source.Form{Sheet: "2024"}}},
		{name: "a glob of JSON with two tables", files: map[string]string{"d/a.json": array(`{"a": [`, `{"text": %q, "label": %q}`, "]") + array(`, "b": [`, `{"text": %q, "label": %q}`, "]}")}, data: "d/*.json", outcome: refused, says: "--sheet of racflow init"},
		{name: "a folder with an open book", files: map[string]string{"d/a.xlsx": book(t, tab{"A", sheet(head)}), "d/~$a.xlsx": "\x05Ann Smith"}, data: "d"},
		{name: "a glob with an open book", files: map[string]string{"d/a.xlsx": book(t, tab{"A", sheet(head)}), "d/~$a.xlsx": "\x05Ann Smith"}, data: "d/*.xlsx"},
		// Folders of labels, and other files beside the texts.
		{name: "folders with a README", files: folders, data: "data", says: "left out: 1 file named README"},
		{name: "folders with notes", files: with(folders, "data/notes.json", "{}", "data/a.md", english, "data/order/p.png", "\x89PNG", "data/order/sub/deep.txt", "deep", "data/.DS_Store", "x", "data/order/~$1.txt", "lock"), data: "data", says: "left out: 4 files beside the texts of labels, 1 file named README"},
		{name: "folders with much else", files: with(folders, "data/a.md", english, "data/b.md", english, "data/refund/c.html", english, "data/refund/d.pdf", "%PDF", "data/e.md", english), data: "data", outcome: asked, says: "5 other files, or be a folder of documents: --format folders says the first, --format documents the second"},
		{name: "folders with much else, named", files: with(folders, "data/a.md", english, "data/b.md", english, "data/c.md", english, "data/d.md", english, "data/e.md", english), data: "data", how: How{As: "folders"}, says: "left out: 5 files beside"},
		{name: "folders in train and test", files: inFolders("data/train", "data/test"), data: "data", outcome: refused, says: "these are in data/test, data/train: name data/train, and perhaps another"},
		{name: "folders in parts with the same labels", files: with(inFolders("data/a", "data/b"), "data/a/urls.txt", "x", "data/b/urls.txt", "x"), data: "data", outcome: refused, says: "name data/a"},
		{name: "folders in a folder", files: inFolders("data/v1/texts"), data: "data", outcome: refused, says: "name data/v1/texts"},
		{name: "a folder in train", files: inFolders("data/train", "data/test"), data: "data/train"},
		{name: "chapters of a handbook", files: map[string]string{"d/index.md": english, "d/a/x.md": english, "d/a/notes.txt": english, "d/b/y.md": english, "d/b/notes.txt": english}, data: "d", want: []pair{}},
		{name: "chapters of two handbooks", files: map[string]string{"d/cars/start/1.txt": english, "d/cars/end/1.txt": english, "d/ships/sail/1.txt": english, "d/ships/dock/1.txt": english}, data: "d", want: []pair{}},
		{name: "documents as folders", files: map[string]string{"d/a.md": english}, data: "d", how: How{As: "folders"}, outcome: refused, says: "d has not the form folders"},
		// Labels that may be sets.
		{name: "ampersands.csv", content: names3(" & "), outcome: asked, says: `such as "ARTS & CULTURE", or one: --column label=label takes each cell for one, as it is`},
		{name: "words.csv", content: names3(" AND "), outcome: asked, says: "ARTS AND CULTURE"},
		{name: "slashes.csv", content: names3("/"), outcome: asked, says: "ARTS/CULTURE"},
		{name: "bars.csv", content: names3("|"), outcome: asked, says: "ARTS|CULTURE"},
		{name: "commas.csv", content: names3(", "), outcome: asked, says: "ARTS, CULTURE"},
		{name: "lists-of-python.csv", content: lines("text,label\n", `%s,"['%s', 'x']"`+"\n") + "one,\"['x', 'y']\"\ntwo,\"['y', 'order']\"\n", outcome: refused, says: "holds lists as texts"},
		{name: "label-studio.csv", content: lines("text,label\n", "%s,%s\n") + "one,\"{\"\"choices\"\": [\"\"order\"\", \"\"x\"\"]}\"\n", outcome: refused, says: "holds objects as texts"},
		{name: "lists-of-numpy.csv", content: lines("text,label\n", "%s,%s\n") + "one,['order' 'x']\n", outcome: refused, says: "holds lists as texts"},
		{name: "lists-of-one.csv", content: lines("text,label\n", `%s,"[""%s""]"`+"\n"), outcome: refused, says: "holds lists as texts"},
		{name: "lists-taken.csv", content: lines("text,label\n", "%s,['%s']\n"), columns: map[string]string{"label": "label"}, want: changed(func(_ int, p *pair) { p.Label = "['" + p.Label + "']" })},
		{name: "brackets.csv", content: lines("text,label\n", "%s,[%s]\n"), want: changed(func(_ int, p *pair) { p.Label = "[" + p.Label + "]" })},
		{name: "one-label.csv", content: lines("text,label\n", "%s,ship\n"), texts: true, says: `column "label" has only one label, "ship" in 12 rows: add rows`},
		{name: "quoted.tsv", content: lines("\"text\"\t\"label\"\n", "\"%s\"\t\"%s\"\n")},
		{name: "quoted-where-needed.txt", content: lines("text\tlabel\r\n", "\"\"\"%s\"\"\"\t%s\r\n"), want: changed(func(_ int, p *pair) { p.Text = `"` + p.Text + `"` })},
		{name: "a folder of quoted TSV", files: map[string]string{"d/a.tsv": half(0, 6, "\"%s\"\t\"%s\"\n"), "d/b.tsv": half(6, 12, "\"%s\"\t\"%s\"\n")}, data: "d", how: How{Form: source.Form{Header: new(bool)}}, columns: map[string]string{"text": "1", "label": "2"}},
		{name: "quotations.tsv", content: lines("text\tlabel\n", "\"%s\"\t%s\n"), want: changed(func(_ int, p *pair) { p.Text = `"` + p.Text + `"` })},
		{name: "jsonl.csv", content: lines("", `{"text": %q, "label": %q}`+"\n")},
		{name: "mixed-ends.csv", content: "text,label\n" + lines("", "%s,%s\r"), outcome: refused, says: "some lines end in CR, and some in LF"},
		{name: "levels.csv", content: lines("text,label\n", "%q,shop|%s\n") + lines("", "%q,home|%s\n"), outcome: asked, says: `such as "home|order", or one`},
		{name: "named.csv", content: names3(" & "), columns: map[string]string{"label": "label"}, want: named3(" & ")},
		{name: "grades.csv", content: lines("text,label\n", "%q,%s\n") + lines("", "%q,%s+\n"), want: append(pairs(), suffixed("+")...)},
		// Content of rows outside of the standards.
		{name: "true-and-false.jsonl", content: strings.NewReplacer(`"order"`, "true", `"refund"`, "false").Replace(lines("", `{"text": %q, "is_order": %q}`+"\n")), want: changed(func(_ int, p *pair) { p.Label = fmt.Sprint(p.Label == "order") })},
		{name: "nan.json", content: array("[", `{"text": %q, "label": %q, "score": NaN}`, "]")},
		{name: "backslashes.csv", content: lines("text,label\n", `"say \"no\", %s","%s"`+"\n"), want: changed(func(_ int, p *pair) { p.Text = `say "no", ` + p.Text }), says: "backslashes before quotes"},
		{name: "delimiters-at-ends.csv", content: lines("text;label;\n", "%s;%s;\n")},
		{name: "comments.json", content: array("[\n", `{"text": %q, "label": %q}`, " // one\n]"), outcome: refused, says: "comments.json:2:"},
		{name: "too-many-fields.csv", content: lines("text,label\n", "%q,%s,x\n"), outcome: refused, says: "12 of 12 rows cannot be used; the first: line 2: it has 3 fields where the header has 2"},
		{name: "no-texts.jsonl", content: lines("", `{"text": [%q], "label": %q}`+"\n"), columns: map[string]string{"text": "text"}, outcome: refused, says: `12 of 12 rows cannot be used; the first: line 1: "text" is not a string`},
		// Names of files and folders.
		{name: "a folder with a bracket", files: map[string]string{"d [1]*/a.csv": csv}, data: "d [1]*"},
		{name: "what[1]?*.csv", content: csv},
		{name: "Ru\u0308ckgabe.csv", content: csv},
		{name: "a file of Macs", files: map[string]string{"O\u0308l/Ru\u0308ckgabe.csv": csv}, data: "\u00d6l/R\u00fcckgabe.csv"},
		{name: "a folder of Macs", files: map[string]string{"O\u0308l/Ru\u0308ckgabe.csv": csv}, data: "O\u0308l"},
		{name: "both names", files: map[string]string{"Ru\u0308.csv": names3("&"), "R\u00fc.csv": csv}, data: "R\u00fc.csv"},
		{name: "the other name", files: map[string]string{"Ru\u0308.csv": csv, "R\u00fc.csv": names3("&")}, data: "Ru\u0308.csv", outcome: refused, says: "differ only in how accents are written"},
		// Several labels, and cases that cannot be decided.
		{name: "cells.csv", content: lines("text,labels\n", "%q,%s|x\n") + "a further one,x|y\nand one more,y|order\n", want: append(suffixed("; x"), pair{"a further one", "x; y"}, pair{"and one more", "order; y"}), says: "several labels in one cell"},
		{name: "cells-taken.csv", content: lines("text,label\n", "%q,%s|x\n"), columns: map[string]string{"label": "label"}, want: suffixed("|x")},
		{name: "hierarchy.csv", content: lines("text,label\n", "%q,shop|%s\n"), want: prefixed("shop|")},
		{name: "lists.jsonl", content: lines("", `{"text": %q, "label": [%q, "x"]}`+"\n"), want: suffixed("; x"), says: "--column 'label=label[0]' takes the first"},
		{name: "lists-first.jsonl", content: lines("", `{"text": %q, "label": [%q, "x"]}`+"\n"), columns: map[string]string{"label": "label[0]"}},
		{name: "lists-of-one.jsonl", content: lines("", `{"text": %q, "label": [%q]}`+"\n")},
		{name: "issues.json", content: array("[", `{"title": "t %[3]d", "body": %[1]q, "labels": [{"name": %[2]q}, {"name": "x"}]}`, "]"), outcome: refused, says: "--column 'label=labels[0].name'"},
		{name: "one-column-a-label.csv", content: lines("text,toxic,insult\n", "%q,0,1\n") + lines("", "%[1]q,1,0\n"), outcome: asked, says: "--column label= where none does"},
		{name: "two-candidates.csv", content: "text,queue,channel\n" + half(0, 6, "%q,%s,mail\n") + half(6, 12, "%q,%s,phone\n"), outcome: asked, says: "--column label="},
		{name: "stars.csv", content: lines("text,stars\n", "%[1]q,5\n") + lines("", "%[1]q,1\n"), outcome: asked, says: "--column label=stars"},
		// Files that contain no rows.
		{name: "rows.zip", content: zipped(t, "rows.csv"), outcome: refused, says: "unpack it and name the file in it"},
		{name: "rows.sqlite", content: "SQLite format 3\x00\x10\x00\x01\x01", outcome: refused, says: "sqlite3 -header -csv rows.sqlite 'select * from TABLE' > rows.csv"},
		{name: "rows.feather", content: "ARROW1\x00\x00\xff\xff\xff\xff", outcome: refused, says: "pandas.read_feather('rows.feather').to_parquet('rows.parquet')"},
		{name: "rows.arrow", content: "\xff\xff\xff\xff\x10\x00\x00\x00", outcome: refused, says: "datasets.Dataset.from_file('rows.arrow')"},
		{name: "a folder of Arrow", files: map[string]string{"d/data-00000-of-00001.arrow": "\xff\xff\xff\xff\x10\x00\x00\x00", "d/state.json": "{}", "d/dataset_info.json": "{}"}, data: "d", outcome: refused, says: "datasets.load_from_disk('d')"},
		{name: "rows.pkl", content: "\x80\x04\x95\x00\x00\x00\xff", outcome: refused, says: "pandas.read_pickle('rows.pkl')"},
		{name: "rows.csv.bz2", content: "BZh91AY&SY\xff\x00", outcome: refused, says: "bunzip2"},
		{name: "rows.xls", content: "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", outcome: refused, says: ".xlsx"},
	}
	counts := map[string]int{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.files == nil {
				tt.files, tt.data = map[string]string{tt.name: tt.content}, tt.name
			}
			if tt.outcome == "" {
				tt.outcome = right
			}
			counts[tt.outcome]++
			write(t, tt.files)
			d, p, err := lookAs(t, tt.how, tt.columns, tt.data)
			var unsure *unsureError
			if got := errors.As(err, &unsure); err != nil && got != (tt.outcome == asked) || (err != nil) != (tt.outcome != right) {
				t.Fatalf("it is not %s: %v", tt.outcome, err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tt.says) {
					t.Fatalf("%q is not in\n%v", tt.says, err)
				}
				return
			}
			var b strings.Builder
			d.Describe(&b)
			fmt.Fprintln(&b, p.Said, p.Next)
			if !strings.Contains(b.String(), tt.says) {
				t.Errorf("%q is not in\n%s", tt.says, b.String())
			}
			if tt.want == nil {
				tt.want = pairs()
			}
			if got := bytes.Contains(p.File, []byte("\n  elect \"intent\" {")); got == (tt.texts || d.Documents != nil) {
				t.Errorf("a classification: %t\n%s", got, b.String())
			}
			got := fromFile(t, p)
			if tt.texts {
				for i := range got {
					got[i].Label = ""
				}
				for i := range tt.want {
					tt.want[i].Label = ""
				}
			}
			order := func(a, b pair) int { return strings.Compare(a.Text+a.Label, b.Text+b.Label) }
			slices.SortFunc(got, order)
			slices.SortFunc(tt.want, order)
			if diff := cmp.Diff(tt.want, got); len(got)+len(tt.want) > 0 && diff != "" {
				t.Errorf("rows differ (-want +got):\n%s\n%s", diff, b.String())
			}
		})
	}
	t.Logf("%d files: %d right, %d asked, %d refused", len(tests), counts[right], counts[asked], counts[refused])
}

// with adds files, given by name and content.
func with(files map[string]string, more ...string) map[string]string {
	files = maps.Clone(files)
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

// inFolders writes each pair below each of some parts, in a folder named by its label.
func inFolders(parts ...string) map[string]string {
	files := map[string]string{}
	for _, part := range parts {
		for i, p := range pairs() {
			files[fmt.Sprintf("%s/%s/%d.txt", part, p.Label, i)] = p.Text
		}
	}
	return files
}

// unsureError is a question of init.
type unsureError struct{ error }

// lookAs does what init does without a terminal.
func lookAs(t *testing.T, how How, columns map[string]string, path string) (Data, *Plan, error) {
	t.Helper()
	d, err := Look(t.Context(), []string{path}, how)
	if err != nil {
		return d, nil, err
	}
	for _, r := range d.Rows {
		for _, step := range []func() error{func() error { return r.Map(columns) }, r.Read} {
			if err := step(); err != nil {
				return d, nil, err
			}
			if r.Unsure != "" {
				return d, nil, &unsureError{errors.New(r.Unsure)}
			}
		}
	}
	p, err := Make(d, Options{Output: "pipeline.hcl", MiniLM: true, Pipelines: pipelines.Files})
	return d, p, err
}

func changed(change func(i int, p *pair)) []pair {
	all := pairs()
	for i := range all {
		change(i, &all[i])
	}
	return all
}

// named3 returns rows with names that contain other names; names3 returns the file with them.
func named3(between string) (all []pair) {
	for i, label := range []string{"ARTS", "ARTS" + between + "CULTURE", "CULTURE" + between + "ARTS", "NEWS"} {
		all = append(all, pair{fmt.Sprintf("the first text about room %d", i), label}, pair{fmt.Sprintf("the second text about room %d", i), label})
	}
	return all
}

func names3(between string) string {
	text := "text,label\n"
	for _, p := range named3(between) {
		text += fmt.Sprintf("%s,%q\n", p.Text, p.Label)
	}
	return text
}

func numbered() []pair            { return changed(func(i int, p *pair) { p.Label = fmt.Sprint(i % 2) }) }
func suffixed(with string) []pair { return changed(func(_ int, p *pair) { p.Label += with }) }
func prefixed(with string) []pair { return changed(func(_ int, p *pair) { p.Label = with + p.Label }) }
