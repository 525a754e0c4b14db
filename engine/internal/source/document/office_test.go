package document

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// officeSwollen makes a file of parts (name, content, name, content ...), and a part that repeats a unit up to a
// size. The part is packed as independent blocks, so that making it is fast.
func officeSwollen(t testing.TB, part, before, unit string, size int, more ...string) []byte {
	t.Helper()
	var packed, whole bytes.Buffer
	sum := crc32.NewIEEE()
	pack := func(text string, times int) {
		var one bytes.Buffer
		w, err := flate.NewWriter(&one, flate.BestCompression)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err = errors.Join(err, w.Flush()); err != nil {
			t.Fatal(err)
		}
		for range times {
			packed.Write(one.Bytes())
			_, _ = io.WriteString(sum, text)
		}
	}
	block := strings.Repeat(unit, 1<<20/len(unit)+1)
	pack(before, 1)
	pack(block, size/len(block))
	packed.Write([]byte{1, 0, 0, 0xff, 0xff}) // the last block
	w := zip.NewWriter(&whole)
	for i := 0; i < len(more); i += 2 {
		f, err := w.Create(more[i])
		if err == nil {
			_, err = io.WriteString(f, more[i+1])
		}
		must.Do(t, err)
	}
	f, err := w.CreateRaw(&zip.FileHeader{Name: part, Method: zip.Deflate, CRC32: sum.Sum32(),
		CompressedSize64: uint64(packed.Len()), UncompressedSize64: uint64(len(before) + size/len(block)*len(block))})
	if err == nil {
		_, err = f.Write(packed.Bytes())
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return whole.Bytes()
}

const (
	bookHead  = `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Big" sheetId="1" r:id="rId1"/></sheets></workbook>`
	bookRels  = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`
	sheetHead = `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>`
	oneRow    = `<row><c t="inlineStr"><is><t>a lost card</t></is></c><c t="inlineStr"><is><t>is blocked</t></is></c></row>`
	sheetEnd  = `</sheetData></worksheet>`
)

// TestBombs reads files that ask for memory, time or disk space. Each causes an error that says what to do.
func TestBombs(t *testing.T) {
	const size = 300 << 20
	sheet := 500 << 20
	if testing.Short() { // with the race detector, the large ones take more memory than a reader may have
		sheet = 1 << 20
	}
	book := func(unit string, size int) []byte {
		return officeSwollen(t, "xl/worksheets/sheet1.xml", sheetHead, unit, size, "_rels/.rels", rels+`<Relationship Id="rId1" Type="`+ofDoc+`officeDocument" Target="xl/workbook.xml"/></Relationships>`, "xl/workbook.xml", bookHead, "xl/_rels/workbook.xml.rels", bookRels)
	}
	main := "word/document.xml"
	laughs := `<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><w:document xmlns:w="w"><w:body>` + para("", "&b;") + `</w:body></w:document>`
	whole := docx(t, para("", "text"))
	for name, c := range map[string]struct {
		kind string
		raw  []byte
		want string
	}{
		"a zip bomb":           {"DOCX", officeSwollen(t, main, `<w:document xmlns:w="w"><w:body>`, " ", size), "unpacks to more than 256 MB"},
		"much text":            {"DOCX", officeSwollen(t, main, `<w:document xmlns:w="w"><w:body>`, para("", strings.Repeat("word ", 100)), 100<<20), "too long"},
		"one text":             {"DOCX", officeSwollen(t, main, `<w:document xmlns:w="w"><w:body><w:p><w:r><w:t>`, "word ", 100<<20), "too long"},
		"many cells":           {"DOCX", officeSwollen(t, main, `<w:document xmlns:w="w"><w:body><w:tbl>`, `<w:tr><w:tc/></w:tr>`, 100<<20), "too long"},
		"an XML bomb":          {"DOCX", zipped(t, main, laughs), "invalid character entity"},
		"elements in elements": {"DOCX", officeSwollen(t, main, "", "<a>", 10<<20), "in each other"},
		"an open element":      {"DOCX", zipped(t, main, "<a>"), "cannot be read"},
		"not a document":       {"DOCX", zipped(t, "a", "b"), "not a Word document"},
		"not a presentation":   {"PPTX", whole, "not a presentation"},
		"not a workbook":       {"XLSX", []byte("text"), "cannot be read"},
		"cut off":              {"DOCX", whole[:len(whole)/2], "cannot be read"},
		"an older format":      {"DOCX", []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "save it without a password as .docx"},
		"slides again":         {"PPTX", officeSwollen(t, "ppt/presentation.xml", `<p xmlns:r="r">`, `<sldId r:id="rId1"/>`, 20<<20), "PPTX"},
		"a sheet of 500 MB":    {"XLSX", book(oneRow, sheet), "its XLSX"}, // it is cut off at the end, if there is time to get there
		"a sheet of nothing":   {"XLSX", book(" ", sheet), ""},
	} {
		if testing.Short() && slices.Contains([]string{"a zip bomb", "much text", "one text", "many cells", "slides again", "a sheet of 500 MB", "a sheet of nothing"}, name) {
			continue
		}
		r, err := readApart(t.Context(), c.kind, c.raw, most, maxTime)
		if c.want == "" && err == nil && len(r.Text) < 100 {
			continue // the file is empty
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "exclude") && !strings.Contains(err.Error(), "save it") {
			t.Errorf("%s: %d bytes, %v", name, len(r.Text), err)
		}
	}
	if r, err := readApart(t.Context(), "DOCX", whole, most, maxTime); err != nil || !strings.HasPrefix(r.Text, "text\n") {
		t.Errorf("a sound one after them: %q, %v", r.Text, err)
	}
	peak(t)
}

// fuzz searches for files that break a reader, or from which it makes no text.
func fuzz(f *testing.F, read apartReader, parts func(t testing.TB, xml string) []byte, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, xml string) {
		text, title, err := read(parts(t, xml), 1<<20, time.Now().Add(time.Second), Unread{})
		if err == nil && (!utf8.ValidString(text) || !utf8.ValidString(title)) {
			t.Errorf("%q became %q", xml, text)
		}
	})
}

func FuzzDOCX(f *testing.F) {
	fuzz(f, DOCX, func(t testing.TB, xml string) []byte { return docx(t, xml) },
		para(`<w:pStyle w:val="Own"/>`, "a")+`<w:tbl><w:tr><w:trPr><w:del/></w:trPr><w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`,
		`<w:p><w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="2"/></w:numPr></w:pPr><w:r><w:t>x</w:t><w:tab/></w:r></w:p>`)
}

func FuzzPPTX(f *testing.F) {
	fuzz(f, PPTX, func(t testing.TB, xml string) []byte { return pptx(t, []string{xml, xml}, []string{xml}) },
		`<p:sld xmlns:p="p" xmlns:a="a">`+shape("title", line("0", "x"))+`<a:tbl><a:tr><a:tc>`+line("1", "y")+`</a:tc></a:tr></a:tbl></p:sld>`)
}

func FuzzXLSX(f *testing.F) {
	fuzz(f, XLSX, func(t testing.TB, xml string) []byte {
		return zipped(t, "xl/workbook.xml", bookHead, "xl/_rels/workbook.xml.rels", bookRels, "xl/worksheets/sheet1.xml", xml)
	}, sheetHead+oneRow+`<row r="9"><c r="C9"><v>1.5</v></c><c r="A9" t="b"><v>1</v></c></row>`+sheetEnd)
}

// later returns a time after the end of every test.
func later() time.Time { return time.Now().Add(time.Hour) }

const most = 20 << 20

// zipped makes a file of parts: name, content, name, content ...
func zipped(t testing.TB, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		f, err := w.Create(parts[i])
		if err == nil {
			_, err = f.Write([]byte(parts[i+1]))
		}
		must.Do(t, err)
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

const (
	rels  = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	ofDoc = `http://schemas.openxmlformats.org/officeDocument/2006/relationships/`
)

// docx returns a document with a body, and parts beside the body.
func docx(t testing.TB, body string, more ...string) []byte {
	return zipped(t, append([]string{
		"_rels/.rels", rels + `<Relationship Id="rId1" Type="` + ofDoc + `officeDocument" Target="word/document.xml"/></Relationships>`,
		"docProps/core.xml", `<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title> The
 cards </dc:title><dc:creator>Somebody</dc:creator></cp:coreProperties>`,
		"word/styles.xml", `<w:styles xmlns:w="w"><w:style w:styleId="Titel"><w:name w:val="Title"/></w:style>
<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style><w:style w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="berschrift1"/></w:style>
<w:style w:styleId="Punkt"><w:name w:val="List Bullet"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>
<w:style w:styleId="V1"><w:name w:val="toc 1"/></w:style><w:style w:styleId="Loop"><w:basedOn w:val="Loop"/></w:style></w:styles>`,
		"word/numbering.xml", `<w:numbering xmlns:w="w"><w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="lowerLetter"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num></w:numbering>`,
		"word/footnotes.xml", `<w:footnotes xmlns:w="w"><w:footnote w:type="separator" w:id="-1"><w:p><w:r><w:t>line</w:t></w:r></w:p></w:footnote>
<w:footnote w:id="1"><w:p><w:r><w:footnoteRef/><w:t xml:space="preserve"> In most countries.</w:t></w:r></w:p></w:footnote></w:footnotes>`,
		"word/document.xml", `<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="w" xmlns:mc="mc"><w:body>` + body + `</w:body></w:document>`,
	}, more...)...)
}

// para is a paragraph of a text with properties.
func para(properties, text string) string {
	return `<w:p><w:pPr>` + properties + `</w:pPr><w:r><w:t xml:space="preserve">` + text + `</w:t></w:r></w:p>`
}

func TestDOCX(t *testing.T) {
	item := func(list, level, text string) string {
		return para(`<w:numPr><w:ilvl w:val="`+level+`"/><w:numId w:val="`+list+`"/></w:numPr>`, text)
	}
	cell := func(text string) string { return "<w:tc>" + para("", text) + "</w:tc>" }
	raw := docx(t, para(`<w:pStyle w:val="V1"/>`, "Fees ... 3")+para(`<w:pStyle w:val="Titel"/>`, "All cards")+para(`<w:pStyle w:val="Own"/>`, "Fees &amp; more")+
		`<w:p><w:pPr><w:rPr><w:vanish/></w:rPr></w:pPr><w:r><w:t xml:space="preserve">A lost card </w:t></w:r><w:del><w:r><w:delText>was</w:delText><w:t>was</w:t></w:r></w:del><w:ins><w:r><w:t>is</w:t></w:r></w:ins>`+
		`<w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:tab/><w:t>blocked</w:t><w:footnoteReference w:id="1"/></w:r><w:r><w:fldChar/><w:instrText>PAGEREF</w:instrText></w:r></w:p>`+
		item("1", "0", "gold")+item("1", "1", "old gold")+item("2", "0", "first")+item("2", "1", "a part")+item("2", "0", "second")+para(`<w:pStyle w:val="Punkt"/>`, "by style")+
		para(`<w:outlineLvl w:val="1"/>`, "A table")+
		`<w:tbl><w:tr>`+cell("card")+cell("fee | cost")+cell("note")+`</w:tr><w:tr><w:trPr><w:del w:id="1"/></w:trPr>`+cell("gone")+cell("1")+cell("")+`</w:tr><w:tr>`+cell("gold")+`<w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>`+para("", "10")+para("", "a year")+`</w:tc></w:tr></w:tbl>`+
		`<w:tbl><w:tr>`+cell("A frame.")+`</w:tr></w:tbl>`+
		`<w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent>`+para("", "In a box.")+`</w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent>`+para("", "In a box.")+`</w:txbxContent></mc:Fallback></mc:AlternateContent><w:t>Around it.</w:t></w:r></w:p>`+para(`<w:pStyle w:val="Loop"/>`, "End.<w:br/>"))
	want := `# All cards

# Fees & more

A lost card is blocked[^1]

- gold
  - old gold
1. first
   1. a part
2. second
- by style

## A table

| card | fee \| cost | note |
|---|---|---|
| gold | 10 a year | 10 a year |

A frame.

In a box.

Around it.

End.

[^1]: In most countries.
`
	text, title, err := DOCX(raw, most, later(), Unread{})
	if err != nil || title != "The cards" {
		t.Fatalf("title %q, %v", title, err)
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
}

// pptx makes slides. Each slide has notes if notes has an entry for it.
func pptx(t testing.TB, slides, notes []string) []byte {
	parts := []string{"ppt/presentation.xml", `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst>`}
	related := rels
	for i, s := range slides {
		n := string(rune('1' + i))
		parts[1] = `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst>` + `<p:sldId id="25` + n + `" r:id="rId` + n + `"/>` + strings.TrimPrefix(parts[1], `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst>`) // the last first
		related += `<Relationship Id="rId` + n + `" Type="` + ofDoc + `slide" Target="slides/slide` + n + `.xml"/>`
		parts = append(parts, "ppt/slides/slide"+n+".xml", s)
		if i < len(notes) {
			parts = append(parts, "ppt/slides/_rels/slide"+n+".xml.rels", rels+`<Relationship Id="rId9" Type="`+ofDoc+`notesSlide" Target="../notesSlides/notesSlide`+n+`.xml"/></Relationships>`,
				"ppt/notesSlides/notesSlide"+n+".xml", notes[i])
		}
	}
	parts[1] += `</p:sldIdLst></p:presentation>`
	return zipped(t, append(parts, "ppt/_rels/presentation.xml.rels", related+"</Relationships>")...)
}

func shape(place, text string) string {
	if place != "" {
		place = `<p:nvPr><p:ph type="` + place + `"/></p:nvPr>`
	}
	return `<p:sp><p:nvSpPr>` + place + `</p:nvSpPr><p:txBody>` + text + `</p:txBody></p:sp>`
}

func line(level, text string) string {
	return `<a:p><a:pPr lvl="` + level + `"/><a:r><a:t>` + text + `</a:t></a:r></a:p>`
}

func TestPPTX(t *testing.T) {
	slide := func(show, shapes string) string {
		return `<p:sld xmlns:p="p" xmlns:a="a"` + show + `><p:cSld><p:spTree>` + shapes + `</p:spTree></p:cSld></p:sld>`
	}
	raw := pptx(t, []string{
		slide("", shape("title", line("0", "Fees"))+`<p:graphicFrame><a:tbl><a:tr><a:tc>`+line("0", "card")+`</a:tc><a:tc>`+line("0", "fee")+`</a:tc></a:tr><a:tr><a:tc>`+line("0", "gold")+`</a:tc><a:tc>`+line("0", "10")+`</a:tc></a:tr></a:tbl></p:graphicFrame>`),
		slide(` show="0"`, shape("title", line("0", "Hidden"))),
		slide("", shape("ctrTitle", line("0", "All")+line("0", "cards"))+shape("body", line("0", "Lost")+line("1", "blocked"))+shape("", line("0", "A remark."))+shape("sldNum", line("0", "1"))),
	}, []string{`<p:notes xmlns:p="p" xmlns:a="a">` + shape("sldImg", "") + shape("body", line("0", "Say it slowly.")) + shape("sldNum", line("0", "3")) + `</p:notes>`})
	want := `## Slide 1: All cards

- Lost
  - blocked

A remark.

## Slide 3: Fees

| card | fee |
|---|---|
| gold | 10 |

Notes: Say it slowly.
`
	text, title, err := PPTX(raw, most, later(), Unread{})
	if err != nil || title != "All cards" {
		t.Fatalf("title %q, %v", title, err)
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
}

// xlsxWorkbook makes sheets of rows.
func xlsx(t testing.TB, sheets map[string][][]any, names ...string) []byte {
	t.Helper()
	f := excelize.NewFile()
	for i, name := range names {
		if _, err := f.NewSheet(name); err != nil {
			t.Fatal(err)
		}
		for n, row := range sheets[name] {
			at, err := excelize.CoordinatesToCellName(1, n+1)
			if err == nil {
				err = f.SetSheetRow(name, at, &row)
			}
			if err != nil {
				t.Fatal(i, err)
			}
		}
	}
	must.Do(t, f.DeleteSheet("Sheet1"))
	if i, _ := f.GetSheetIndex("Hidden"); i >= 0 {
		must.Do(t, f.SetSheetVisible("Hidden", false))
	}
	var b bytes.Buffer
	must.Do(t, f.Write(&b))
	return b.Bytes()
}

func TestXLSX(t *testing.T) {
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	raw := xlsx(t, map[string][][]any{
		"Fees":   {{"All fees"}, {}, {"card", "fee", "since"}, {"gold|blue", 10.5, day}, {nil, nil, nil}, {"red", nil, "a\nb"}, {"only one"}},
		"Column": {{"word"}, {"one"}, {"two"}},
		"Note":   {{"Just this."}},
		"Hidden": {{"secret", "too"}},
		"Empty":  {},
	}, "Fees", "Column", "Note", "Hidden", "Empty")
	want := `## Fees

All fees

| card | fee | since |
|---|---|---|
| gold\|blue | 10.5 | 2026-03-01 |
| red |  | a b |
| only one |

## Column

| word |
|---|
| one |
| two |

## Note

Just this.
`
	text, _, err := XLSX(raw, most, later(), Unread{})
	must.Do(t, err)
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
}

// Cells of sheets have their values, with the units that they show. A merged cell has its value in each of its rows.
func TestCellsOfSheets(t *testing.T) {
	f := excelize.NewFile()
	for i, row := range [][]any{{"kind", "what", "value"}, {"numbers", "id", 900000000000207001}, {nil, "price", 1234.567}, {nil, "share", 0.125}, {nil, "secret", 7}, {nil, "done", true}} {
		must.Do(t, f.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &row))
	}
	for cell, code := range map[string]string{"C3": `"$"#,##0.00`, "C4": "0%", "C5": ";;;"} {
		style, err := f.NewStyle(&excelize.Style{CustomNumFmt: &code})
		must.Do(t, err)
		must.Do(t, f.SetCellStyle("Sheet1", cell, cell, style))
	}
	must.Do(t, f.MergeCell("Sheet1", "A2", "A4"))
	var b bytes.Buffer
	must.Do(t, f.Write(&b))
	want := `## Sheet1

| kind | what | value |
|---|---|---|
| numbers | id | 900000000000207001 |
| numbers | price | $1234.567 |
| numbers | share | 12.5% |
|  | secret |
|  | done | TRUE |
`
	text, _, err := XLSX(b.Bytes(), most, later(), Unread{})
	must.Do(t, err)
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
	must.Do(t, f.SetCellFormula("Sheet1", "C7", "C3*2"))
	b.Reset()
	must.Do(t, f.Write(&b))
	if _, _, err := XLSX(b.Bytes(), most, later(), Unread{}); err == nil || !strings.Contains(err.Error(), "formulas without values, the first in row 7 of sheet Sheet1: open the file in Excel or LibreOffice and save it") {
		t.Errorf("a formula without a value: %v", err)
	}
}

// TestOfficeParts reads other parts of an office file, and counts what is not read.
func TestOfficeParts(t *testing.T) {
	chunk := func(body, part, content string, more ...string) []byte {
		return docx(t, para("", "Report")+body, append([]string{"word/_rels/document.xml.rels", rels + `<Relationship Id="rId5" Type="x/aFChunk" Target="` + part + `"/></Relationships>`, "word/" + part, content}, more...)...)
	}
	const alt, art = `<w:altChunk xmlns:r="r" r:id="rId5"/>`, `<w:p><w:r><mc:AlternateContent><mc:Choice><w:drawing><a:graphic><dgm:relIds xmlns:r="r" r:dm="rId5"/></a:graphic></w:drawing></mc:Choice></mc:AlternateContent></w:r></w:p>`
	point := func(text string) string { return `<dgm:pt><dgm:t>` + line("0", text) + `</dgm:t></dgm:pt>` }
	tall := `<p:sld xmlns:p="p" xmlns:a="a"><p:graphicFrame><a:tbl><a:tr><a:tc rowSpan="2">` + line("0", "Basic") + `</a:tc><a:tc gridSpan="2">` + line("0", "60") + `</a:tc><a:tc hMerge="1"/></a:tr><a:tr><a:tc vMerge="1"/><a:tc>` + line("0", "30") + `</a:tc><a:tc>` + line("0", "45") + `</a:tc></a:tr></a:tbl></p:graphicFrame></p:sld>`
	cell := func(properties, text string) string {
		return "<w:tc><w:tcPr>" + properties + "</w:tcPr>" + para("", text) + "</w:tc>"
	}
	slide := func(more ...string) string {
		return string(zipped(t, append([]string{"ppt/presentation.xml", `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldId id="1" r:id="r1"/></p:presentation>`,
			"ppt/_rels/presentation.xml.rels", rels + `<Relationship Id="r1" Type="x/slide" Target="slides/slide1.xml"/></Relationships>`}, more...)...))
	}
	for name, c := range map[string]struct{ raw, want, unread string }{
		"page.docx":  {string(chunk(alt, "chunk1.html", "<meta charset=windows-1252><h1>Pr\xfcfung</h1><p>The boiler leaks.")), "Report\n\n# Prüfung\n\nThe boiler leaks.", ""},
		"mht.docx":   {string(chunk(alt, "c.mht", "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n--x\nContent-Type: text/html\n\n<p>It leaks.\n--x--\n")), "Report\n\nIt leaks.", ""},
		"inner.docx": {string(chunk(alt, "c.docx", string(docx(t, para("", "It leaks."))))), "Report\n\nIt leaks.\n\n[^1]: In most countries.", ""},
		"text.docx":  {string(chunk(alt, "c.txt", "It leaks < 5 l.")), "Report\n\nIt leaks < 5 l.", ""},
		"rtf.docx":   {string(chunk(alt, "c.rtf", `{\rtf1 It leaks.}`)), "Report", "1 part in RTF"},
		"art.docx":   {string(chunk(art, "diagrams/data1.xml", `<dgm:dataModel xmlns:dgm="d" xmlns:a="a">`+point("Ombudsman answers")+point("Nine days")+`<dgm:pt type="pres"/></dgm:dataModel>`)), "Report\n\n- Ombudsman answers\n- Nine days", ""},
		"merged.docx": {string(docx(t, `<w:tbl><w:tr>`+cell("", "Plan")+cell(`<w:gridSpan w:val="2"/>`, "Limits")+`</w:tr><w:tr>`+cell(`<w:vMerge w:val="restart"/>`, "Basic")+cell("", "60")+cell("", "9")+`</w:tr><w:tr>`+cell(`<w:vMerge/>`, "")+cell("", "30")+cell("", "4")+`</w:tr></w:tbl>`)),
			"| Plan | Limits | Limits |\n|---|---|---|\n| Basic | 60 | 9 |\n| Basic | 30 | 4 |", ""},
		"frame.docx":  {string(docx(t, `<w:tbl><w:tr>`+cell(`<w:gridSpan w:val="3"/>`, "5")+cell("", "5")+`</w:tr></w:tbl>`)), "5\n\n5", ""},
		"nested.docx": {string(docx(t, `<w:tbl><w:tr>`+cell("", "a")+cell("", "b")+`</w:tr><w:tr><w:tc><w:tbl><w:tr>`+cell(`<w:gridSpan w:val="2"/>`, "7")+cell("", "7")+`</w:tr></w:tbl></w:tc>`+cell("", "c")+`</w:tr></w:tbl>`)), "| a | b |\n|---|---|\n| 7 7 | c |", ""},
		"more.docx":   {string(docx(t, para("", "Report"), "word/charts/chart1.xml", "x", "word/charts/style1.xml", "x", "word/embeddings/Microsoft_Excel_Sheet.xlsx", "x", "word/embeddings/oleObject1.bin", "x")), "Report", "1 attachment, 1 chart"},
		"tall.pptx":   {slide("ppt/slides/slide1.xml", tall), "## Slide 1\n\n| Basic | 60 | 60 |\n|---|---|---|\n| Basic | 30 | 45 |", ""},
		"art.pptx": {slide("ppt/slides/slide1.xml", `<p:sld xmlns:p="p" xmlns:a="a"><p:graphicFrame><dgm:relIds xmlns:r="r" r:dm="r7"/></p:graphicFrame></p:sld>`, "ppt/slides/_rels/slide1.xml.rels",
			rels+`<Relationship Id="r7" Type="x/diagramData" Target="../diagrams/data1.xml"/></Relationships>`, "ppt/diagrams/data1.xml", `<dgm:dataModel xmlns:dgm="d" xmlns:a="a">`+point("Pay")+`</dgm:dataModel>`), "## Slide 1\n\n- Pay", ""},
		"bare.docx": {string(zipped(t, "word/document.xml", `<w:document xmlns:w="w"/>`, "word/embeddings/a.bin", "x")), "", "1 attachment"},
	} {
		d, _, err := open(t, Set{Path: folder(t, map[string]string{name: c.raw})}).Read(t.Context(), name)
		if c.want == "" {
			if err == nil || !strings.Contains(err.Error(), "its DOCX holds no text (not read: "+c.unread+"); leave it out with exclude") {
				t.Errorf("%s: %q, %v", name, d.Text, err)
			}
			continue
		}
		if got := strings.TrimSpace(strings.TrimSuffix(d.Text, "[^1]: In most countries.\n")); err != nil || got != c.want || d.Unread.String() != c.unread {
			t.Errorf("%s: %q, not read: %s, %v", name, got, d.Unread, err)
		}
	}
}
