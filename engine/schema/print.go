package schema

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/racflow/racflow/sdk"
)

// List prints stages with their purpose, a line each.
func List(w io.Writer, stages []Stage) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var kind sdk.Kind
	for _, s := range stages {
		shown := ""
		if s.Kind != kind {
			kind, shown = s.Kind, string(s.Kind)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", shown, s.Use, s.Doc)
	}
	return tw.Flush()
}

// Text prints a stage with its arguments.
func Text(w io.Writer, s Stage) error {
	fmt.Fprintf(w, "%s %s\n%s\n", s.Kind, s.Use, s.Doc)
	if about := s.about(); about != "" {
		fmt.Fprintf(w, "It %s.\n", about)
	}
	for _, a := range s.Arguments {
		fmt.Fprintf(w, "\n  %s (%s)\n", a.Name, strings.Join(append([]string{string(a.Type)}, a.Facts()...), "; "))
		fmt.Fprintf(w, "      %s\n", a.Doc)
		for _, inner := range a.Arguments {
			fmt.Fprintf(w, "      %s (%s): %s\n", inner.Name, strings.Join(append([]string{string(inner.Type)}, inner.Facts()...), "; "), inner.Doc)
		}
	}
	_, err := fmt.Fprintf(w, "\n%s", s.Example)
	return err
}

// about is what a stage reads, whom it asks, and what a store attaches.
func (s Stage) about() string {
	var all []string
	if len(s.Reads) > 0 {
		all = append(all, "reads "+strings.Join(s.Reads, ", "))
	}
	if s.Network {
		all = append(all, "talks to other machines")
	}
	if s.Attaches != "" {
		all = append(all, "serves a collection that you already have where "+s.Attaches+" is given")
	}
	return strings.Join(all, ", and ")
}

// Markdown writes a page about the stages of a kind.
func Markdown(w io.Writer, kind sdk.Kind, stages []Stage) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- Written by racflow stages --markdown %s; run make generate after a change of a stage. -->\n", kind)
	fmt.Fprintf(&b, "# Stages of the kind `%s`\n", kind)
	for _, s := range stages {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s", s.Use, s.Doc)
		if about := s.about(); about != "" {
			fmt.Fprintf(&b, " It %s.", about)
		}
		fmt.Fprintf(&b, "\n\n```hcl\n%s```\n", s.Example)
		if len(s.Arguments) == 0 {
			b.WriteString("\nIt has no arguments.\n")
			continue
		}
		b.WriteString("\n| argument | type | value | what it is |\n|---|---|---|---|\n")
		for _, a := range s.Arguments {
			row(&b, a.Name, a)
			for _, inner := range a.Arguments {
				row(&b, a.Name+"."+inner.Name, inner)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func row(b *strings.Builder, name string, a Argument) {
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "*", `\*`, "<", `\<`).Replace
	fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, cell(string(a.Type)), cell(strings.Join(a.Facts(), "; ")), cell(a.Doc))
}
