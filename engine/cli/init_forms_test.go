package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// ticket is a row of the files that TestInitForms writes.
type ticket struct {
	Text  string `json:"utterance" parquet:"utterance"`
	Label string `json:"intent" parquet:"intent"`
}

// Whatever the format of the rows, init writes a file that runs as it is, and whose held-out rows
// have labels.
func TestInitForms(t *testing.T) {
	var all []ticket
	for i := range 12 {
		all = append(all, ticket{fmt.Sprintf("where is the parcel, no. %d from the café", i), "order"}, ticket{fmt.Sprintf("I want my money back for no. %d", i), "refund"})
	}
	lines := func(head, format string) string {
		text := head
		for _, row := range all {
			text += fmt.Sprintf(format, row.Text, row.Label)
		}
		return text
	}
	objects := func(before, format, after string) string {
		var texts []string
		for _, row := range all {
			text, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, fmt.Sprintf(format, text))
		}
		return before + strings.Join(texts, ",\n") + after
	}
	encoded := func(text string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	tabs, commas, semicolons := lines("utterance\tintent\n", "%s\t%s\n"), lines("utterance,intent\n", "%q,%s\n"), lines("intent;utterance\n", "%[2]s;%[1]s\n")
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	fmt.Fprint(w, commas)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"tabs.tsv":        tabs,
		"commas.csv":      commas,
		"semicolons.csv":  semicolons,
		"bars.csv":        lines("utterance|intent\n", "%s|%s\n"),
		"no-header.tsv":   lines("", "%s\t%s\n"),
		"cp1252.csv":      encoded(charmap.Windows1252.NewEncoder().String(semicolons)),
		"utf-16.tsv":      encoded(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(tabs)),
		"lines.jsonl":     strings.ReplaceAll(objects("", "%s", "\n"), "},\n", "}\n"),
		"nested.jsonl":    strings.ReplaceAll(objects("", `{"data": %s}`, "\n"), "},\n", "}\n"),
		"array.json":      objects("[", "%s", "]"),
		"object.json":     objects(`{"version": 1, "rows": [`, "%s", "]}"),
		"commas.csv.gz":   zipped.String(),
		"tabs.tsv.zst":    string(z.EncodeAll([]byte(tabs), nil)),
		"table.parquet":   parquetOf(t, all),
		"workbook.xlsx":   workbookOf(t, all),
		"parts/a.csv":     "",
		"no-extension":    tabs,
		"old-mac.tsv":     strings.ReplaceAll(tabs, "\n", "\r"),
		"with spaces.csv": "\uFEFF" + strings.ReplaceAll(commas, "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && !strings.HasSuffix(name, ".xlsx") && !strings.HasSuffix(name, ".parquet") {
				t.Skip("the others, too, in the long tests")
			}
			files, data := map[string]string{name: content}, name
			if filepath.Dir(name) != "." { // a glob for two files
				data = "parts/*.csv"
				files = map[string]string{name: commas, "parts/b.csv": strings.ReplaceAll(semicolons, "no.", "number")}
			}
			dir := folder(t, files)
			must(t, racflow(t, dir, "init", data))
			out, errs := good(t, racflow(t, dir, "run", "-var", "embedder=hashing", "--format", "jsonl", "pipeline.hcl"))
			items := jsonLines[struct{ Text, Expected, Answer string }](t, out)
			for _, item := range items {
				if item.Expected != "order" && item.Expected != "refund" || item.Answer == "" {
					t.Fatalf("%+v", item)
				}
				if strings.Contains(item.Text, "caf") && !strings.HasSuffix(item.Text, "café") {
					t.Errorf("the text is %q", item.Text)
				}
			}
			if len(items) == 0 || len(items) > len(all) {
				t.Errorf("%d items\n%s", len(items), errs)
			}
		})
	}
}

func parquetOf(t *testing.T, rows []ticket) string {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func workbookOf(t *testing.T, rows []ticket) string {
	t.Helper()
	f := excelize.NewFile()
	defer f.Close()
	for i, row := range append([]ticket{{"utterance", "intent"}}, rows...) {
		if err := f.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &[]any{row.Text, row.Label}); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
