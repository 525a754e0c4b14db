package document

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// drawn places texts: x, y, text, x, y, text ... A character is 6 wide.
func drawn(at ...any) string {
	var b strings.Builder
	b.WriteString("BT /F1 10 Tf\n")
	for i := 0; i < len(at); i += 3 {
		fmt.Fprintf(&b, "1 0 0 1 %v %v Tm (%s) Tj\n", at[i], at[i+1], at[i+2])
	}
	return b.String() + "ET"
}

func TestColumns(t *testing.T) {
	words := func(column string, row int) string { return fmt.Sprintf("%s column, row %d of its text", column, row) }
	var byRow, byColumn, three []any
	var left, right, middle []string
	for row := range 6 {
		l, m, r := words("left", row), words("middle", row), words("right", row)
		byRow = append(byRow, 50, 700-12*row, l, 300, 700-12*row, r)
		three = append(three, 50, 700-12*row, l, 300, 700-12*row, m, 550, 700-12*row, r)
		left, right, middle = append(left, l), append(right, r), append(middle, m)
	}
	for row := range 6 {
		byColumn = append(byColumn, 50, 700-12*row, left[row])
	}
	for row := range 6 {
		byColumn = append(byColumn, 300, 700-12*row, right[row])
	}
	columns := strings.Join(left, "\n") + "\n\n" + strings.Join(right, "\n")
	heading := []any{50, 720, "A heading that stands across both of the columns of it"}
	var table, second []any
	var rows []string
	for row := range 8 {
		table = append(table, 50, 700-12*row, fmt.Sprint("card ", row), 300, 700-12*row, "the fee of a card for a whole year", 600, 700-12*row, fmt.Sprint(10*row))
		rows = append(rows, fmt.Sprintf("card %d the fee of a card for a whole year %d", row, 10*row))
	}
	for _, v := range byRow {
		if y, ok := v.(int); ok && y > 600 {
			v = y - 150
		}
		second = append(second, v)
	}
	for name, c := range map[string]struct {
		at   []any
		want string
	}{
		"row by row":         {byRow, columns},
		"column by column":   {byColumn, columns},
		"three columns":      {three, strings.Join(left, "\n") + "\n\n" + strings.Join(middle, "\n") + "\n\n" + strings.Join(right, "\n")},
		"below a heading":    {append(heading, byRow...), heading[2].(string) + "\n\n" + columns},
		"around a heading":   {append(append(append([]any{}, byRow...), 50, 580, heading[2]), second...), columns + "\n\n" + heading[2].(string) + "\n\n" + columns},
		"a table":            {table, strings.Join(rows, "\n")},
		"a paragraph":        {[]any{50, 700, "one column of text, and", 230, 700, "another piece of its line", 50, 688, "its second row"}, "one column of text, and another piece of its line\nits second row"},
		"a gutter of spaces": {[]any{50, 700, "Dear Sir,", 50, 676, "all is well."}, "Dear Sir,\n\nall is well."},
	} {
		text, _, err := inProcess([]byte(pdfOf(drawn(c.at...))))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, text); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// FuzzColumns searches for places that lose or duplicate a piece.
func FuzzColumns(f *testing.F) {
	f.Add([]byte("\x01\x01\x30\x80\x01\x30\x01\x10\x30\x80\x10\x30"))
	f.Fuzz(func(t *testing.T, places []byte) {
		var lines [][]piece
		for i := 0; i+2 < len(places); i += 3 {
			x, y, wide := float64(places[i]), float64(places[i+1]), float64(places[i+2])
			p := piece{text: fmt.Sprint("a piece of some length ", i), x: x, y: y, endX: x + wide, high: 10, turned: places[i]%16 == 15}
			if last := len(lines) - 1; last >= 0 && y == lines[last][0].y {
				lines[last] = append(lines[last], p)
			} else {
				lines = append(lines, []piece{p})
			}
		}
		texts := func(lines [][]piece) (texts []string) {
			for _, p := range slices.Concat(lines...) {
				texts = append(texts, p.text)
			}
			slices.Sort(texts)
			return texts
		}
		want := texts(lines)
		if got := texts(inColumns(lines, 0)); !slices.Equal(got, want) {
			t.Errorf("%v became %v", want, got)
		}
	})
}

// pdfSwollen returns a page's stream that begins with one text and repeats another up to a size. The stream takes
// a thousandth of that size.
func pdfSwollen(t *testing.T, before, unit string, size int) string {
	t.Helper()
	packed := func(text string) string {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.BestCompression)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err = errors.Join(err, w.Flush()); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	block := strings.Repeat(unit, 1<<20/len(unit))
	return "\x78\x9c" + packed(before) + strings.Repeat(packed(block), size/len(block)) // as independent blocks
}

// TestPDFBombs reads PDFs that ask for all memory, or never end. The reading process may break; the test's process
// must not.
func TestPDFBombs(t *testing.T) {
	must.NoRace(t) // its readers would need more memory than they may have
	xref := func(size string) string {
		head := "%PDF-1.5\n"
		return head + "1 0 obj\n<</Type/XRef/Size " + size + "/W[1 2 1]/Root 2 0 R/Length 4>>\nstream\n\x01\x00\x00\x00\nendstream\nendobj\n" + fmt.Sprintf("startxref\n%d\n%%%%EOF\n", len(head))
	}
	far := strings.Replace(pdfOf(""), "xref\n0 ", "xref\n2000000000 ", 1)
	const packed = "/Filter/FlateDecode"
	var forms []string
	for i := range 12 {
		forms = append(forms, stream(fmt.Sprintf("/Type/XObject/Subtype/Form/BBox[0 0 612 792]/Resources<</XObject<</X %d 0 R>>>>", 6+i), strings.Repeat("q 1 0 0 1 0 -1 cm /X Do Q ", 10)))
	}
	const memory, most = maxTime, 20 << 20 // long enough to ask for all memory
	for name, bomb := range map[string]struct {
		content string
		most    int64
		within  time.Duration
	}{
		"a table of 4 billion objects": {xref("4000000000"), most, memory},
		"a table without end":          {xref("9000000000000000000"), most, memory},
		"an object far away":           {far, most, memory},
		"a text of 3 GB":               {pdfWith(packed, pdfSwollen(t, "BT /F1 10 Tf (", "a", 3<<30)), most, memory},
		"lists in lists":               {pdfWith(packed, pdfSwollen(t, "", "[", 1<<30)), most, time.Second / 2}, // it never ends
		"ten forms in each of ten":     {onePage("/XObject<</X 5 0 R>>", "/X Do", forms...), most, time.Second},
		"a text of many words":         {pdfWith(packed, pdfSwollen(t, "BT /F1 10 Tf ", "(word) Tj ", 1<<30)), 1 << 20, memory},
	} {
		text, _, err := read(t, []byte(bomb.content), bomb.most, bomb.within)
		if err == nil {
			t.Errorf("%s: it was read, %d bytes", name, len(text))
		}
	}
	// Cyclic or very large content is read in bounded time.
	form := func(content string) string {
		return stream("/Type/XObject/Subtype/Form/BBox[0 0 612 792]/Resources<</XObject<</A 5 0 R/B 6 0 R>>/Font<</F1 7 0 R>>>>", content)
	}
	const one = "BT /F1 10 Tf 50 700 Td (one) Tj ET"
	both := "/XObject<</A 5 0 R/B 6 0 R>>/Font<</F1 7 0 R>>"
	many := make([]string, 10_000)
	for i := range many {
		many[i] = one
	}
	whole := pdfOf(one)
	startxref := strings.LastIndex(whole, "xref\n0 ")
	for name, c := range map[string]struct{ content, want string }{
		"a form in itself":      {onePage(both, one+" /A Do", form(one+" /A Do"), form(""), courier), "one"},
		"forms in each other":   {onePage(both, one+" /A Do", form("/B Do"), form("/A Do"), courier), "one"},
		"10,000 pages":          {pdfOf(many...), "one" + strings.Repeat("\n\fone", len(many)-1)},
		"a table before itself": {strings.Replace(whole, "/Root 1 0 R", fmt.Sprintf("/Prev %d/Root 1 0 R", startxref), 1), "one"},
		"a length of itself":    {strings.Replace(whole, fmt.Sprintf("/Length %d", len(one)), "/Length 6 0 R", 1), "one"},
		"a page that is wide":   {strings.Replace(whole, "/Type/Page/", "/MediaBox[0 0 1e30 1e30]/Type/Page/", 1), "one"},
		"a font of itself":      {strings.Replace(whole, "/Widths[", "/ToUnicode 4 0 R/FontDescriptor 4 0 R/Encoding 4 0 R/Widths[", 1), "one"},
		"states in states":      {pdfOf(strings.Repeat("q ", 1_000_000) + one), "one"},
	} {
		text, _, err := read(t, []byte(c.content), 20<<20, maxTime)
		if err != nil || text != c.want {
			t.Errorf("%s: %d bytes, %.100q, %v", name, len(text), text, err)
		}
	}
}

// inProcess reads a PDF in the process of the test.
func inProcess(raw []byte) (text string, unread Unread, err error) {
	r, err := readPDF(request{Raw: raw, Most: 1 << 20, Within: time.Hour})
	return r.Text, r.Unread, err
}

func read(t *testing.T, raw []byte, most int64, within time.Duration) (text, title string, err error) {
	t.Helper()
	r, err := readApart(t.Context(), "PDF", raw, most, within)
	return r.Text, r.Title, err
}

var courier = "<</Type/Font/Subtype/Type1/BaseFont/Courier/Encoding/WinAnsiEncoding/FirstChar 32/LastChar 126/Widths[" + strings.Repeat("600 ", 95) + "]>>"

// pdfOf writes a PDF of pages with the given text operators.
func pdfOf(pages ...string) string {
	return pdfWith("", pages...)
}

// pdfWith is pdfOf with an addition to the declaration of the text operators.
func pdfWith(declared string, pages ...string) string {
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>", "", "<</Title(A  short\nguide)>>",
		courier}
	var kids strings.Builder
	for _, text := range pages {
		n := len(objects) + 1
		fmt.Fprintf(&kids, "%d 0 R ", n)
		objects = append(objects, fmt.Sprintf("<</Type/Page/Parent 2 0 R/Contents %d 0 R/Resources<</Font<</F1 4 0 R>>>>>>", n+1),
			fmt.Sprintf("<</Length %d%s>>\nstream\n%s\nendstream", len(text), declared, text))
	}
	objects[1] = fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", kids.String(), len(pages))
	return pdfObjects("", objects...)
}

// pdfObjects writes a PDF of objects: the first is its root, the third has its title. trailer is added to the
// trailer.
func pdfObjects(trailer string, objects ...string) string {
	var b, table strings.Builder
	b.WriteString("%PDF-1.4\n")
	for i, o := range objects {
		fmt.Fprintf(&table, "%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n%strailer\n<</Root 1 0 R/Info 3 0 R/Size %d%s>>\nstartxref\n%d\n%%%%EOF\n",
		len(objects)+1, table.String(), len(objects)+1, trailer, b.Len())
	return b.String()
}

func TestPDF(t *testing.T) {
	// At 10 points a character of this font is 6 wide.
	for name, c := range map[string]struct{ operators, want string }{
		"a line":               {"BT /F1 10 Tf 50 700 Td (one) Tj 0 -12 Td (two) Tj ET", "one\ntwo"},
		"a paragraph":          {"BT /F1 10 Tf 50 700 Td (one) Tj 0 -30 Td (two) Tj ET", "one\n\ntwo"},
		"pieces of a word":     {"BT /F1 10 Tf 50 700 Td (one) Tj 18 0 Td (two) Tj ET", "onetwo"},
		"words by their place": {"BT /F1 10 Tf 50 700 Td (one) Tj 24 0 Td (two) Tj ET", "one two"},
		"words by kerning":     {"BT /F1 10 Tf 50 700 Td [(o) 20 (ne) -400 (two)] TJ ET", "one two"},
		"lines by leading":     {"BT /F1 10 Tf 12 TL 50 700 Td (one) Tj T* (two) Tj (three) ' 0 0 (four) \" ET", "one\ntwo\nthree\nfour"},
		"a matrix":             {"BT /F1 1 Tf 10 0 0 10 50 700 Tm (one) Tj 10 0 0 10 74 700 Tm (two) Tj ET", "one two"},
		"spaced letters":       {"BT /F1 10 Tf 4 Tc 50 700 Td (one) Tj 30 0 Td (two) Tj ET", "onetwo"},
		"no font":              {"BT (lost) Tj /F1 10 Tf (one) Tj ET", "one"},
		"not known":            {"q 1 0 0 1 0 0 cm BT /F1 10 Tf (caf\\351) Tj ET Q", "café"},
	} {
		text, title, err := read(t, []byte(pdfOf(c.operators)), 20<<20, maxTime)
		if err != nil || title != "A short guide" {
			t.Errorf("%s: title %q, %v", name, title, err)
		}
		if diff := cmp.Diff(c.want, text); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	one := "BT /F1 10 Tf 50 700 Td (one) Tj ET"
	if text, _, err := read(t, []byte(pdfOf(one, "", one)), 20<<20, maxTime); err != nil || text != "one\n\f\n\fone" {
		t.Errorf("pages: %q, %v", text, err)
	}
}

func TestPDFsThatAreRefused(t *testing.T) {
	one := "BT /F1 10 Tf 50 700 Td (one) Tj ET"
	whole := pdfOf(one)
	for name, c := range map[string]struct{ content, want string }{
		"cut off":     {whole[:len(whole)/2], "cannot be read"},
		"no text":     {pdfOf("0 0 10 10 re f"), "holds no text"},
		"deep":        {strings.Replace(whole, "/Kids[5 0 R ]", "/Kids"+strings.Repeat("[", 1_000_000), 1), "cannot be read"},
		"too long":    {pdfOf("BT /F1 10 Tf 12 TL 0 1300 Td " + strings.Repeat("(many words) Tj T*\n", 100) + "ET"), "too long"},
		"a loop":      {strings.Replace(whole, "/Kids[5 0 R ]", "/Kids[2 0 R ]", 1), "cannot be read"},
		"no numbers":  {strings.ReplaceAll(whole, "0 R", "x R"), "PDF"},
		"only a head": {"%PDF-1.4", "cannot be read"},
	} {
		if _, _, err := read(t, []byte(c.content), 1000, maxTime); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// Tables of contents are removed from a PDF, and its pages are counted as before; other tables stay.
func TestTablesOfContents(t *testing.T) {
	const leader = " . . . . . . . . "
	page := func(lines ...string) string {
		var at []any
		for i, l := range lines {
			at = append(at, 50, 700-12*i, l)
		}
		return drawn(at...)
	}
	for name, c := range map[string]struct {
		pages []string
		want  string // of the first page; empty: all lines stay
	}{
		"dots":               {[]string{page("Contents", "1 Cards"+leader+"1", "1.1 Fees........2", "2 Water"+leader+"4", "The end")}, "Contents\n\n\n\nThe end"},
		"over two pages":     {[]string{page("1 Cards"+leader+"1", "1.1 Fees"+leader+"2"), page("Contents", "2 Water"+leader+"4")}, "\n"},
		"a title of 2 lines": {[]string{page("1 Cards"+leader+"1", "2 Of the water and", "of the fish in it"+leader+"2", "3 Food"+leader+"4")}, "\n\n\n"},
		"an index":           {[]string{page("fish"+leader+"4", "food"+leader+"2", "water"+leader+"1")}, "\n\n"},
		"without dots":       {[]string{page("Contents", "Cards 1", "Fees 2", "Water 2", "Food 3", "Light 4")}, "Contents\n\n\n\n\n"},
		"falling":            {[]string{page("Cards 1", "Fees 4", "Water 2", "Food 3", "Light 1")}, ""},
		"beyond the pages":   {[]string{page("Cards"+leader+"10", "Fees"+leader+"20", "Water"+leader+"40", "Food"+leader+"50")}, ""},
		"small figures":      {[]string{page("Cards 1", "Fees 1", "Water 1", "Food 2", "Light 2")}, ""},
		"two with dots":      {[]string{page("Cards"+leader+"1", "Fees"+leader+"2")}, ""},
		"among sentences":    {[]string{page("It has page 1", "and more", "of that on 2", "and more", "of that on 3", "and more", "of that on 3", "and more", "of that on 4")}, ""},
		"numbers alone":      {[]string{page("1 1", "2 2", "3 3", "3 4", "4 4")}, ""},
		"decimals":           {[]string{page("Cards 1.1", "Fees 1.2", "Water 1.3", "Food 1.4", "Light 2.4")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pages := append(c.pages, page("one"), page("two"), page("three"))[:4]
			raw := []byte(pdfOf(pages...))
			whole, _, err := inProcess(raw)
			if err != nil {
				t.Fatal(err)
			}
			dir := open(t, Set{Path: folder(t, map[string]string{"a.pdf": string(raw)})})
			d, _, err := dir.Read(t.Context(), "a.pdf")
			if err != nil || (d.Unread["table of contents"] > 0) != (c.want != "") {
				t.Fatalf("%v, %v", d.Unread, err)
			}
			if c.want == "" {
				c.want, _, _ = strings.Cut(whole, "\n\f")
			}
			if first, _, _ := strings.Cut(d.Text, "\n\f"); first != c.want || strings.Count(d.Text, "\f") != 3 {
				t.Errorf("%q became %q", whole, d.Text)
			}
		})
	}
}
