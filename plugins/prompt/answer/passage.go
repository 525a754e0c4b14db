package answer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/racflow/racflow/plugins/internal/delimit"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

// passages are delimited by marks that no text of a document can hold.
var passages = delimit.New("passage")

// passage writes a candidate as the passage of a number.
func (p *prompter) passage(number int, c *sdk.Candidate) string {
	var out strings.Builder
	fmt.Fprintf(&out, "<passage %d>\nSource: %s\n", number, passages.Escape(source(c)))
	if context, _ := sdk.SplitContext(c.Context); p.config.Context && strings.TrimSpace(context) != "" {
		fmt.Fprintf(&out, "Context: %s\n", passages.Escape(fewshot.OneLine(context)))
	}
	fmt.Fprintf(&out, "Text:\n%s\n</passage %d>", passages.Escape(strings.Trim(c.Text, "\r\n")), number)
	return out.String()
}

// source names where a candidate comes from, in a line: a document by its path,
// title, headings and lines or pages, a row by its id.
func source(c *sdk.Candidate) string {
	meta := func(name string) string { s, _ := c.Meta[name].(string); return fewshot.OneLine(s) }
	var parts []string
	add := func(part string) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	path, title := meta("path"), meta("title")
	add(path)
	if title != "" && title != path {
		add(strconv.Quote(title))
	}
	if len(parts) == 0 {
		add(fewshot.OneLine(c.ID))
	}
	add(meta("headings"))
	for _, of := range []string{"line", "page"} {
		first, last := count(c.Meta["first_"+of]), count(c.Meta["last_"+of])
		switch {
		case first == "":
		case last == "" || last == first:
			add(of + " " + first)
		default:
			add(of + "s " + first + " to " + last)
		}
	}
	return strings.Join(parts, ", ")
}

// count writes a number of the metadata; empty: it is none.
func count(value any) string {
	n, ok := value.(float64)
	if !ok {
		return ""
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}
