package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/racflow/racflow/engine/doctor"
	"github.com/racflow/racflow/engine/terminal"
)

// Doctor shows what was found, with rows and what to do.
func Doctor(w io.Writer, r doctor.Report) error {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s (%s)\n", f.Severity, f.Message, f.Check)
		for _, row := range f.Rows {
			b.WriteString("    " + row.File)
			if row.Line > 0 {
				fmt.Fprintf(&b, ":%d", row.Line)
			}
			if row.Text != "" {
				fmt.Fprintf(&b, "  %q", terminal.Shorten(row.Text, 60))
			}
			if row.Label != "" {
				fmt.Fprintf(&b, "  %s", row.Label)
			}
			if row.Proposal != "" {
				fmt.Fprintf(&b, " -> %s", row.Proposal)
			}
			if row.Note != "" {
				fmt.Fprintf(&b, "  [%s]", row.Note)
			}
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "  %s\n\n", f.Advice)
	}
	for _, why := range r.Skipped {
		fmt.Fprintf(&b, "not looked at: %s\n", why)
	}
	fmt.Fprintf(&b, "%s of knowledge and %s of the input looked at", terminal.Plural(r.Rows, "row"), terminal.Plural(r.Items, "item"))
	if r.Voted > 0 {
		fmt.Fprintf(&b, ", %d of them with votes", r.Voted)
	}
	fmt.Fprintf(&b, ": %s\n", terminal.Plural(len(r.Findings), "finding"))
	_, err := io.WriteString(w, terminal.Sanitize(b.String()))
	return err
}
