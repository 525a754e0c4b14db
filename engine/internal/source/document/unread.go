package document

import (
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk"
)

// Document is a document as it was read.
type Document struct {
	sdk.Document
	Unread Unread
}

// Unread counts what a reader did not read of a document, by kind. A kind is named in the singular, and its first word
// has the plural: "attachment", "page of pictures".
type Unread map[string]int

// Add adds the counts of others.
func (u Unread) Add(others Unread) {
	for kind, n := range others {
		u[kind] += n
	}
}

// String lists the counts: "2 attachments, 1 page of pictures"; empty: all was read.
func (u Unread) String() string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(u)) {
		noun, rest, more := strings.Cut(kind, " ")
		if noun = terminal.Plural(u[kind], noun); more {
			noun += " " + rest
		}
		all = append(all, noun)
	}
	return strings.Join(all, ", ")
}
