package units

import (
	"maps"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// Around returns the ids of a chunk and of n chunks before and after it in its document,
// in order; those of them that a document does not have are among them. nil: the
// candidate is no chunk of a document.
func Around(c sdk.Candidate, n int) []string {
	document, ok := c.Meta[metaDocument].(string)
	if !ok {
		return nil
	}
	number, err := strconv.Atoi(strings.TrimPrefix(c.ID, document+"#"))
	if err != nil {
		return nil
	}
	var ids []string
	for i := max(0, number-n); i <= number+n; i++ {
		ids = append(ids, chunkID(document, i))
	}
	return ids
}

// Widen gives a candidate the text and the place of chunks that follow each other in its
// document. What two of them share stands once.
func Widen(c sdk.Candidate, chunks []sdk.Entry) sdk.Candidate {
	c.Meta = maps.Clone(c.Meta)
	end := 0
	for i, e := range chunks {
		start, last := span(e.Meta)
		own := e.Text[max(0, len(e.Text)-max(0, last-start)):] // without its header
		switch {
		case i == 0:
			c.Text = e.Text
			place(c.Meta, e.Meta, metaStart, "first_line", "first_page")
		case start > end:
			c.Text += "\n" + own
		case end-start < len(own):
			c.Text += own[end-start:]
		}
		place(c.Meta, e.Meta, metaEnd, "last_line", "last_page")
		end = max(end, last)
	}
	return c
}

func place(to, from sdk.Meta, keys ...string) {
	for _, key := range keys {
		if v, ok := from[key]; ok {
			to[key] = v
		}
	}
}

// span is the place of a chunk in its document's text, in bytes.
func span(m sdk.Meta) (start, end int) {
	from, _ := m[metaStart].(float64)
	to, _ := m[metaEnd].(float64)
	return int(from), int(to)
}
