package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"

	"github.com/racflow/racflow/engine/document/apart"
)

var errBare = errors.New("its PDF holds no text, pictures of it perhaps; recognise its text (OCR) first, or leave it out with exclude")

// Text returns the text of a PDF of at most about so many bytes, with a form
// feed between pages, and its title. It is an apart.Reader.
func Text(raw []byte, most int64, stop time.Time) (text, title string, err error) {
	r, err := pdf.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return "", "", fmt.Errorf("its PDF cannot be read: %w; leave it out with exclude", err)
	}
	var b strings.Builder
	var tree catalog
	tree.collect(r.Trailer().Key("Root").Key("Pages"), pdf.Value{}, 0)
	for n, leaf := range tree.pages {
		if time.Now().After(stop) || int64(b.Len()) > most {
			return "", "", apart.TooLong("PDF")
		}
		if n > 0 {
			b.WriteString("\n\f")
		}
		if leaf.contents.IsNull() {
			continue
		}
		p := page{out: &b, most: most, stop: stop, resources: leaf.fonts, fonts: map[string]*font{}, matrix: unit6, line: unit6, scale: 1}
		pdf.Interpret(leaf.contents, p.do)
		if !p.shown {
			p.pieces = inColumns(p.pieces)
		}
		p.write(p.pieces)
	}
	if strings.TrimSpace(b.String()) == "" {
		return "", "", errBare
	}
	title = strings.Join(strings.Fields(r.Trailer().Key("Info").Key("Title").Text()), " ")
	return strings.ToValidUTF8(b.String(), "\uFFFD"), strings.ToValidUTF8(title, "\uFFFD"), nil
}

// catalog collects pages. Unlike the reader's own walk, it ends in a tree that leads back
// to itself.
type catalog struct {
	pages   []struct{ contents, fonts pdf.Value }
	visited int
}

func (t *catalog) collect(node, resources pdf.Value, depth int) {
	const deepest, largest = 64, 100_000
	if t.visited++; depth > deepest || t.visited > largest {
		return
	}
	if own := node.Key("Resources"); !own.IsNull() { // pages inherit them
		resources = own
	}
	kids := node.Key("Kids")
	if kids.Kind() != pdf.Array {
		t.pages = append(t.pages, struct{ contents, fonts pdf.Value }{node.Key("Contents"), resources.Key("Font")})
		return
	}
	for i := range kids.Len() {
		t.collect(kids.Index(i), resources, depth+1)
	}
}
