package rows

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// bookOf returns a workbook with one sheet of rows, in a form that programs other than Excel may choose: the workbook
// has another path, names have prefixes and other cases, and texts are in another part.
func bookOf(t *testing.T, rows, after, properties string) []byte {
	t.Helper()
	const main = `xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="r"`
	relation := func(id, kind, target string) string {
		return `<Relationship Id="` + id + `" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/` + kind + `" Target="` + target + `"/>`
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range map[string]string{
		"_rels/.rels":            "<Relationships>" + relation("a", "officeDocument", "xl/Book.xml") + "</Relationships>",
		"xl/book.xml":            `<x:workbook ` + main + `>` + properties + `<x:sheets><x:sheet name="Data" sheetId="7" r:id="s"/></x:sheets></x:workbook>`,
		`xl\_rels\book.xml.rels`: "<Relationships>" + relation("s", "worksheet", "/xl/Pages/One.xml") + relation("t", "sharedStrings", "texts.xml") + relation("u", "styles", "styles.xml") + "</Relationships>",
		"xl/styles.xml":          `<x:styleSheet ` + main + `><x:numFmts><x:numFmt numFmtId="200" formatCode="000"/></x:numFmts><x:cellXfs><x:xf/><x:xf numFmtId="14"/><x:xf numFmtId="200"/></x:cellXfs></x:styleSheet>`,
		"xl/texts.xml":           `<x:sst ` + main + `><x:si><x:t>plain &amp; simple</x:t></x:si><x:si><x:r><x:t xml:space="preserve">in </x:t></x:r><x:r><x:t>runs</x:t></x:r></x:si><x:si><x:t>東京</x:t><x:rPh sb="0" eb="2"><x:t>トウキョウ</x:t></x:rPh></x:si><x:si><x:t>a_x000D__x005F_b</x:t></x:si></x:sst>`,
		"xl/pages/one.xml":       `<x:worksheet ` + main + `><x:sheetData>` + rows + `</x:sheetData>` + after + `</x:worksheet>`,
	} {
		part, err := z.Create(name)
		must.Do(t, err)
		_, err = part.Write([]byte(content))
		must.Do(t, err)
	}
	must.Do(t, z.Close())
	return b.Bytes()
}

// recordsOf reads a workbook.
func recordsOf(t *testing.T, book []byte, headed bool) (all []string, w *Workbook) {
	t.Helper()
	w, err := OpenWorkbook(bytes.NewReader(book), int64(len(book)), "")
	must.Do(t, err)
	defer w.Close()
	for {
		r, err := w.Next()
		if errors.Is(err, io.EOF) {
			return all, w
		}
		must.Do(t, err)
		fields := slices.Clone(r.Fields)
		for _, i := range r.Uncomputed {
			for len(fields) <= i {
				fields = append(fields, "")
			}
			fields[i] = "?"
		}
		for _, i := range r.Cut {
			fields[i] += "..."
		}
		if all = append(all, strings.Join(fields, "|")); headed && len(all) == 1 {
			w.Unmerge()
		}
	}
}

func TestCells(t *testing.T) {
	const stale = `<x:calcPr fullCalcOnLoad="1"/>`
	cell := func(in string) string { return `<x:row><x:c r="B2"` + in + `</x:c></x:row>` }
	for name, tt := range map[string]struct{ row, properties, want string }{
		"a number":                        {`><x:v>900000000000207001</x:v>`, "", "900000000000207001"},
		"a number cut off":                {`><x:v>9.00000000000207E+17</x:v>`, "", "900000000000207000..."},
		"a large round number":            {`><x:v>9E+17</x:v>`, "", "900000000000000000"},
		"a date":                          {` s="1"><x:v>45351</x:v>`, "", "2024-02-29"},
		"a date since 1904":               {` s="1"><x:v>43889</x:v>`, `<x:workbookPr date1904="true"/>`, "2024-02-29"},
		"a date in words":                 {` t="d"><x:v>2024-02-29T00:00:00.000Z</x:v>`, "", "2024-02-29"},
		"a time in words":                 {` t="d"><x:v>2024-02-29T12:30:00</x:v>`, "", "2024-02-29T12:30:00"},
		"a code":                          {` s="2" t="n"><x:v>7</x:v>`, "", "007"},
		"another style":                   {` s="3"><x:v>7</x:v>`, "", "7"},
		"a shared text":                   {` t="s"><x:v>0</x:v>`, "", "plain & simple"},
		"a text in runs":                  {` t="s"><x:v>1</x:v>`, "", "in runs"},
		"a text with its pronunciation":   {` t="s"><x:v>2</x:v>`, "", "東京"},
		"a text with escapes":             {` t="s"><x:v>3</x:v>`, "", "a\r_b"},
		"no such text":                    {` t="s"><x:v>4</x:v></x:c><x:c><x:v>1</x:v>`, "", "|1"},
		"a text of digits":                {` t="inlineStr" s="2"><x:is><x:t>1.50</x:t></x:is>`, "", "1.50"},
		"an inline text in runs":          {` t="inlineStr"><x:is><x:r><x:t>in </x:t></x:r><x:r><x:t>runs</x:t></x:r></x:is>`, "", "in runs"},
		"a formula of a text":             {` t="str"><x:f>A1</x:f><x:v>007</x:v>`, "", "007"},
		"a formula of no text":            {` t="str"><x:f>A1</x:f><x:v></x:v></x:c><x:c><x:v>1</x:v>`, "", "|1"},
		"a formula of a number":           {`><x:f>1+1</x:f><x:v>2</x:v>`, "", "2"},
		"a formula of 0":                  {`><x:f>1-1</x:f><x:v>0</x:v>`, "", "0"},
		"true":                            {` t="b"><x:v>1</x:v>`, "", "TRUE"},
		"false":                           {` t="b"><x:f>A1=1</x:f><x:v>0</x:v>`, "", "FALSE"},
		"an error":                        {` t="e"><x:v>#N/A</x:v></x:c><x:c><x:v>1</x:v>`, "", "|1"},
		"a formula without a value":       {`><x:f>1+1</x:f>`, "", "?"},
		"of openpyxl":                     {`><x:f>1+1</x:f><x:v></x:v>`, "", "?"},
		"of excelize":                     {` t="str"><x:f>1+1</x:f>`, "", "?"},
		"of XlsxWriter":                   {`><x:f>1+1</x:f><x:v>0</x:v>`, stale, "?"},
		"a 0 where others have values":    {`><x:f>1-1</x:f><x:v>0</x:v></x:c><x:c><x:f>1</x:f><x:v>1</x:v>`, stale, "0|1"},
		"a number in a book not computed": {`><x:v>0</x:v>`, stale, "0"},
	} {
		all, _ := recordsOf(t, bookOf(t, cell(tt.row), "", tt.properties), true)
		if got := strings.TrimPrefix(strings.Join(all, "\n"), "|"); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

// A merged cell applies to all its rows, but not if it begins in the row that names the columns.
func TestMergedCells(t *testing.T) {
	row := func(cells ...string) (row string) {
		for _, c := range cells {
			row += `<x:c t="inlineStr"><x:is><x:t>` + c + `</x:t></x:is></x:c>`
		}
		return "<x:row>" + row + "</x:row>"
	}
	for name, tt := range map[string]struct {
		rows, merged, want string
		headless           bool
		filled             int
	}{
		"rows":                    {row("label", "text") + row("x", "a") + row("", "b") + row("y", "c"), "A2:A3", "label|text x|a x|b y|c", false, 1},
		"rows and columns":        {row("label", "to", "text") + row("x", "", "a") + row("", "", "b"), "$A$2:$B$3", "label|to|text x||a x||b", false, 1},
		"the last column":         {row("text", "label") + row("a", "x") + row("b"), "B2:B9", "text|label a|x b|x", false, 1},
		"columns":                 {row("text", "label") + row("a", ""), "A2:B2", "text|label a|", false, 0},
		"blank rows":              {row("text", "label") + row("a", "x") + row() + row(" ") + row("b"), "B2:B5", "text|label a|x b|x", false, 1},
		"the names of columns":    {row("text", "label") + row("a", ""), "B1:B2", "text|label a|", false, 0},
		"where nothing is named":  {row("a", "x") + row("b", ""), "B1:B2", "a|x b|x", true, 1},
		"a formula without value": {row("text", "label") + `<x:row><x:c><x:v>1</x:v></x:c><x:c><x:f>A1</x:f></x:c></x:row>` + row("b"), "B2:B3", "text|label 1|? b|?", false, 0},
		"no range":                {row("text", "label") + row("a", "x") + row("b"), "B2:ZZZZ9999", "text|label a|x b|", false, 0},
	} {
		all, w := recordsOf(t, bookOf(t, tt.rows, `<x:mergeCells><x:mergeCell ref="`+tt.merged+`"/></x:mergeCells>`, ""), !tt.headless)
		if got := strings.Join(all, " "); got != tt.want || w.Filled() != tt.filled {
			t.Errorf("%s: %q with %d filled cells, not %q", name, got, w.Filled(), tt.want)
		}
	}
}

// A sheet may be damaged in ways that are valid XML.
func TestDamagedSheets(t *testing.T) {
	for rows, want := range map[string]string{
		`<x:row r="1048577"><x:c><x:v>1</x:v></x:c></x:row>`:                   "there is no row 1048577",
		`<x:row><x:c r="XFE1"><x:v>1</x:v></x:c></x:row>`:                      `no cell is called "XFE1"`,
		`<x:row><x:c r="1A"><x:v>1</x:v></x:c></x:row>`:                        `no cell is called "1A"`,
		`<x:row>` + strings.Repeat(`<x:c/>`, maxColumns+1) + `</x:row>`:        "too many cells",
		`<x:row><x:c s="red"><x:v>1</x:v></x:c></x:row>`:                       "invalid syntax",
		`<x:row><x:c><x:v>1</x:v></x:c></x:row><x:row r="-4"><x:c/></x:row>`:   "there is no row -4",
		`<x:row><x:c t="s"><x:v>-1</x:v></x:c><x:c><x:v>1</x:v></x:c></x:row>`: "",
	} {
		book := bookOf(t, rows, "", "")
		w, err := OpenWorkbook(bytes.NewReader(book), int64(len(book)), "")
		for err == nil {
			_, err = w.Next()
		}
		if want == "" && !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v", rows, err)
		}
	}
}
