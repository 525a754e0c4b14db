package office

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/document/apart"
)

// swollen makes a file of parts, name, content, name, content ..., and one that is a unit again and
// again up to a size. It is packed as blocks that know nothing of each other, so that it is
// made fast.
func swollen(t testing.TB, part, before, unit string, size int, more ...string) []byte {
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
		if err != nil {
			t.Fatal(err)
		}
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

// TestBombs reads files that ask for memory, time or room on the disk: each is an error that
// says what to do.
func TestBombs(t *testing.T) {
	const size = 300 << 20
	sheet := 500 << 20
	if testing.Short() { // with the race detector, the large ones take more memory than a reader may have
		sheet = 1 << 20
	}
	book := func(unit string, size int) []byte {
		return swollen(t, "xl/worksheets/sheet1.xml", sheetHead, unit, size, "_rels/.rels", rels+`<Relationship Id="rId1" Type="`+ofDoc+`officeDocument" Target="xl/workbook.xml"/></Relationships>`, "xl/workbook.xml", bookHead, "xl/_rels/workbook.xml.rels", bookRels)
	}
	main := "word/document.xml"
	laughs := `<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><w:document xmlns:w="w"><w:body>` + para("", "&b;") + `</w:body></w:document>`
	whole := docx(t, para("", "text"))
	for name, c := range map[string]struct {
		kind string
		raw  []byte
		want string
	}{
		"a zip bomb":           {"DOCX", swollen(t, main, `<w:document xmlns:w="w"><w:body>`, " ", size), "unpacks to more than 256 MB"},
		"much text":            {"DOCX", swollen(t, main, `<w:document xmlns:w="w"><w:body>`, para("", strings.Repeat("word ", 100)), 100<<20), "too long"},
		"one text":             {"DOCX", swollen(t, main, `<w:document xmlns:w="w"><w:body><w:p><w:r><w:t>`, "word ", 100<<20), "DOCX"},
		"many cells":           {"DOCX", swollen(t, main, `<w:document xmlns:w="w"><w:body><w:tbl>`, `<w:tr><w:tc/></w:tr>`, 100<<20), "too long"},
		"an XML bomb":          {"DOCX", zipped(t, main, laughs), "invalid character entity"},
		"elements in elements": {"DOCX", swollen(t, main, "", "<a>", 10<<20), "in each other"},
		"an open element":      {"DOCX", zipped(t, main, "<a>"), "cannot be read"},
		"not a document":       {"DOCX", zipped(t, "a", "b"), "not a Word document"},
		"not a presentation":   {"PPTX", whole, "not a presentation"},
		"not a workbook":       {"XLSX", []byte("text"), "cannot be read"},
		"cut off":              {"DOCX", whole[:len(whole)/2], "cannot be read"},
		"an older format":      {"DOCX", []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "save it without a password as .docx"},
		"slides again":         {"PPTX", swollen(t, "ppt/presentation.xml", `<p xmlns:r="r">`, `<sldId r:id="rId1"/>`, 20<<20), "PPTX"},
		"a sheet of 500 MB":    {"XLSX", book(oneRow, sheet), "too long"},
		"a sheet of nothing":   {"XLSX", book(" ", sheet), ""},
	} {
		if testing.Short() && slices.Contains([]string{"a zip bomb", "much text", "one text", "many cells", "slides again", "a sheet of 500 MB", "a sheet of nothing"}, name) {
			continue
		}
		text, _, err := apart.Read(t.Context(), c.kind, c.raw, most, apart.Time)
		if c.want == "" && err == nil && len(text) < 100 {
			continue // it holds nothing
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "exclude") && !strings.Contains(err.Error(), "save it") {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
	if text, _, err := apart.Read(t.Context(), "DOCX", whole, most, apart.Time); err != nil || !strings.HasPrefix(text, "text\n") {
		t.Errorf("a sound one after them: %q, %v", text, err)
	}
	peak(t)
}

// fuzz looks for files that a reader breaks on, or makes no text of.
func fuzz(f *testing.F, read apart.Reader, parts func(t testing.TB, xml string) []byte, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, xml string) {
		text, title, err := read(parts(t, xml), 1<<20, time.Now().Add(time.Second))
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
