package report

import (
	"fmt"
	"strings"

	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/sdk"
)

// placeOf is where a candidate is from: path:lines, or path and pages; its id where
// it is no part of a document.
func placeOf(c sdk.Candidate) string {
	place, _ := c.Meta["path"].(string)
	if place == "" {
		place = c.ID
	}
	if from, to, ok := span(c.Meta, "line"); ok {
		place += ":" + between(from, to)
	} else if from, to, ok := span(c.Meta, "page"); ok && from == to {
		place += fmt.Sprintf(", page %d", from)
	} else if ok {
		place += ", pages " + between(from, to)
	}
	return place
}

func span(m sdk.Meta, unit string) (from, to int, ok bool) {
	first, ok := m["first_"+unit].(float64)
	last, _ := m["last_"+unit].(float64)
	return int(first), int(max(first, last)), ok
}

func between(from, to int) string {
	if from == to {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d-%d", from, to)
}

// cited lists what an answer cites: [1] guide.md:3-9; [4] notes.md:1-2.
func cited(citations []run.Citation) string {
	all := make([]string, len(citations))
	for i, c := range citations {
		all[i] = fmt.Sprintf("[%d] %s", c.Number, placeOf(c.Passage))
	}
	return strings.Join(all, "; ")
}

// found lists the ids of what a pipeline without an election ends with: guide.md#3; notes.md#0.
func found(r run.Result) string {
	if !r.RetrievalOnly {
		return ""
	}
	ids := make([]string, len(r.Candidates))
	for i, c := range r.Candidates {
		ids[i] = c.ID
	}
	return strings.Join(ids, "; ")
}
