package pdf

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/document/apart"
)

func init() { apart.Serve(map[string]apart.Reader{"PDF": Text}) }

// soon is a time at which no test ends.
func soon() time.Time { return time.Now().Add(time.Hour) }

func read(t *testing.T, raw []byte, most int64, within time.Duration) (text, title string, err error) {
	t.Helper()
	return apart.Read(t.Context(), "PDF", raw, most, within)
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
		text, title, err := read(t, []byte(pdfOf(c.operators)), 20<<20, apart.Time)
		if err != nil || title != "A short guide" {
			t.Errorf("%s: title %q, %v", name, title, err)
		}
		if diff := cmp.Diff(c.want, text); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	one := "BT /F1 10 Tf 50 700 Td (one) Tj ET"
	if text, _, err := read(t, []byte(pdfOf(one, "", one)), 20<<20, apart.Time); err != nil || text != "one\n\f\n\fone" {
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
		if _, _, err := read(t, []byte(c.content), 1000, apart.Time); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
