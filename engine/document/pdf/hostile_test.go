package pdf

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/document/apart"
)

// swollen is a page's stream that begins with one text and goes on with another up
// to a size, and takes a thousandth of it.
func swollen(t *testing.T, before, unit string, size int) string {
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
	const memory, most = apart.Time, 20 << 20 // long enough to ask for all memory
	for name, bomb := range map[string]struct {
		content string
		most    int64
		within  time.Duration
	}{
		"a table of 4 billion objects": {xref("4000000000"), most, memory},
		"a table without end":          {xref("9000000000000000000"), most, memory},
		"an object far away":           {far, most, memory},
		"a text of 3 GB":               {pdfWith(packed, swollen(t, "BT /F1 10 Tf (", "a", 3<<30)), most, memory},
		"lists in lists":               {pdfWith(packed, swollen(t, "", "[", 1<<30)), most, time.Second / 2}, // it takes for ever
		"a text of many words":         {pdfWith(packed, swollen(t, "BT /F1 10 Tf ", "(word) Tj ", 1<<30)), 1 << 20, memory},
	} {
		text, _, err := read(t, []byte(bomb.content), bomb.most, bomb.within)
		if err == nil {
			t.Errorf("%s: it was read, %d bytes", name, len(text))
		}
	}
	if text, _, err := read(t, []byte(pdfOf("BT /F1 10 Tf 50 700 Td (one) Tj ET")), 20<<20, apart.Time); err != nil || text != "one" {
		t.Errorf("a sound one after them: %q, %v", text, err)
	}
}
