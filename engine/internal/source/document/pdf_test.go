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
)

// drawn shows texts at places: x, y, text, x, y, text ... A character is 6 wide.
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
		text, _, err := PDF([]byte(pdfOf(drawn(c.at...))), 1<<20, soon())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, text); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A page of more pieces than are looked at is written as it is drawn, each piece once.
func TestManyPieces(t *testing.T) {
	n := maxPieces + 1000
	text, _, err := PDF([]byte(pdfOf("BT /F1 10 Tf 50 700 Td "+strings.Repeat("(a) Tj ", n)+" ET")), 20<<20, soon())
	if err != nil || text != strings.Repeat("a", n) {
		t.Errorf("%d bytes of %d, %v", len(text), n, err)
	}
}

// FuzzColumns looks for places that lose a piece, or double it. The library below breaks on many
// texts: apart.go is for that.
func FuzzColumns(f *testing.F) {
	f.Add([]byte("\x01\x01\x30\x80\x01\x30\x01\x10\x30\x80\x10\x30"))
	f.Fuzz(func(t *testing.T, places []byte) {
		var pieces []piece
		for i := 0; i+2 < len(places); i += 3 {
			x, y, wide := float64(places[i]), float64(places[i+1]), float64(places[i+2])
			pieces = append(pieces, piece{fmt.Sprint("a piece of some length ", i), x, y, x + wide, y, 10})
		}
		texts := func(all []piece) (texts []string) {
			for _, p := range all {
				texts = append(texts, p.text)
			}
			slices.Sort(texts)
			return texts
		}
		ordered := make([]piece, 0, len(pieces))
		if len(pieces) > 0 {
			cut(rowsOf(pieces), 0, func(p piece) { ordered = append(ordered, p) })
		}
		if !slices.Equal(texts(ordered), texts(pieces)) || !slices.Equal(texts(inColumns(pieces)), texts(pieces)) {
			t.Errorf("%v became %v", pieces, ordered)
		}
	})
}

// pdfSwollen is a page's stream that begins with one text and goes on with another up
// to a size, and takes a thousandth of it.
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
	return "\x78\x9c" + packed(before) + strings.Repeat(packed(block), size/len(block)) // as blocks that know nothing of each other
}

// TestPDFBombs reads PDFs that ask for all memory, or never end. The process that
// reads one may break; this one must not.
func TestPDFBombs(t *testing.T) {
	xref := func(size string) string {
		head := "%PDF-1.5\n"
		return head + "1 0 obj\n<</Type/XRef/Size " + size + "/W[1 2 1]/Root 2 0 R/Length 4>>\nstream\n\x01\x00\x00\x00\nendstream\nendobj\n" + fmt.Sprintf("startxref\n%d\n%%%%EOF\n", len(head))
	}
	far := strings.Replace(pdfOf(""), "xref\n0 ", "xref\n2000000000 ", 1)
	const packed = "/Filter/FlateDecode"
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
		"lists in lists":               {pdfWith(packed, pdfSwollen(t, "", "[", 1<<30)), most, time.Second / 2}, // it takes for ever
		"a text of many words":         {pdfWith(packed, pdfSwollen(t, "BT /F1 10 Tf ", "(word) Tj ", 1<<30)), 1 << 20, memory},
	} {
		text, _, err := read(t, []byte(bomb.content), bomb.most, bomb.within)
		if err == nil {
			t.Errorf("%s: it was read, %d bytes", name, len(text))
		}
	}
	if text, _, err := read(t, []byte(pdfOf("BT /F1 10 Tf 50 700 Td (one) Tj ET")), 20<<20, maxTime); err != nil || text != "one" {
		t.Errorf("a sound one after them: %q, %v", text, err)
	}
}

// soon is a time at which no test ends.
func soon() time.Time { return time.Now().Add(time.Hour) }

func read(t *testing.T, raw []byte, most int64, within time.Duration) (text, title string, err error) {
	t.Helper()
	return readApart(t.Context(), "PDF", raw, most, within)
}

// pdfOf writes a PDF of pages whose text operators are given.
func pdfOf(pages ...string) string {
	return pdfWith("", pages...)
}

// pdfWith is the same with something more in what declares the text operators.
func pdfWith(declared string, pages ...string) string {
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>", "", "<</Title(A  short\nguide)>>",
		"<</Type/Font/Subtype/Type1/BaseFont/Courier/Encoding/WinAnsiEncoding/FirstChar 32/LastChar 126/Widths[" + strings.Repeat("600 ", 95) + "]>>"}
	var kids strings.Builder
	for _, text := range pages {
		n := len(objects) + 1
		fmt.Fprintf(&kids, "%d 0 R ", n)
		objects = append(objects, fmt.Sprintf("<</Type/Page/Parent 2 0 R/Contents %d 0 R/Resources<</Font<</F1 4 0 R>>>>>>", n+1),
			fmt.Sprintf("<</Length %d%s>>\nstream\n%s\nendstream", len(text), declared, text))
	}
	objects[1] = fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", kids.String(), len(pages))
	var b, table strings.Builder
	b.WriteString("%PDF-1.4\n")
	for i, o := range objects {
		fmt.Fprintf(&table, "%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n%strailer\n<</Root 1 0 R/Info 3 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF\n",
		len(objects)+1, table.String(), len(objects)+1, b.Len())
	return b.String()
}

func TestPDF(t *testing.T) {
	// With 10 points a character of this font is 6 wide.
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
		"deep":        {strings.Replace(whole, "<</Font<</F1 4 0 R>>>>", strings.Repeat("[", 1_000_000), 1), "cannot be read"},
		"too long":    {pdfOf(strings.Repeat("BT /F1 10 Tf (many words) Tj ET\n", 100)), "too long"},
		"a loop":      {strings.Replace(whole, "/Kids[5 0 R ]", "/Kids[2 0 R ]", 1), "holds no text"},
		"no numbers":  {strings.ReplaceAll(whole, "0 R", "x R"), "PDF"},
		"only a head": {"%PDF-1.4", "cannot be read"},
	} {
		if _, _, err := read(t, []byte(c.content), 1000, maxTime); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// Tables of contents are left out of a PDF, with its pages counted as before; other tables stay.
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
			whole, _, err := PDF(raw, 1<<20, soon())
			if err != nil {
				t.Fatal(err)
			}
			dir := open(t, Set{Path: folder(t, map[string]string{"a.pdf": string(raw)})})
			d, _, err := dir.Read(t.Context(), "a.pdf")
			if err != nil || dir.Contents["a.pdf"] != (c.want != "") {
				t.Fatalf("%v, %v", dir.Contents, err)
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
