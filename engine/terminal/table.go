package terminal

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// NewTable aligns lines of cells that end with tabs, once it is flushed.
func NewTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// Plural is a number of things by their name: 1 entry, 2 entries.
func Plural(n int, name string) string {
	if stem, ok := strings.CutSuffix(name, "y"); n != 1 && ok && !strings.HasSuffix(stem, "a") { // but 2 days
		name = stem + "ies"
	} else if n != 1 && strings.HasSuffix(name, "ch") {
		name += "es"
	} else if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}
