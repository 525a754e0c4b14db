package result

import (
	"fmt"
	"strings"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// Place is where a candidate is from: path:lines, or path and pages; its id where it
// is not part of a document.
func Place(c sdk.Candidate) string {
	place, _ := c.Meta["path"].(string)
	if place == "" {
		place = c.ID
	}
	if lines, _ := span(c.Meta, "line"); lines != "" {
		return place + ":" + lines
	}
	switch pages, several := span(c.Meta, "page"); {
	case several:
		place += ", pages " + pages
	case pages != "":
		place += ", page " + pages
	}
	return place
}

// span is the first and the last of a candidate's lines or pages; empty: not known.
func span(m sdk.Meta, unit string) (text string, several bool) {
	first, ok := m["first_"+unit].(float64)
	last, _ := m["last_"+unit].(float64)
	switch {
	case !ok:
		return "", false
	case last <= first:
		return fmt.Sprint(int(first)), false
	}
	return fmt.Sprintf("%d-%d", int(first), int(last)), true
}

// cited lists what an answer cites: [1] guide.md:3-9; [4] notes.md:1-2.
func cited(citations []outcome.Citation) string {
	all := make([]string, len(citations))
	for i, c := range citations {
		all[i] = fmt.Sprintf("[%d] %s", c.Number, Place(c.Passage))
	}
	return strings.Join(all, "; ")
}
