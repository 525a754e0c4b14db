package scaffold

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/language"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/terminal"
)

// few is how many rows of a label are too few to learn it from.
const few = 5

// Describe writes what was seen of data whose rows have been read.
func (d Data) Describe(w io.Writer) {
	for _, r := range d.Rows {
		r.describe(w)
	}
	if d.Documents != nil {
		d.Documents.describe(w)
	}
}

func (r *Rows) describe(w io.Writer) {
	how := []string{strings.ToUpper(string(r.Seen.Format))}
	if r.From != nil {
		how[0] = r.From.what + ", --format " + r.From.name
	}
	if d := r.Seen.Delimiter; d != "" && d != "," && d != "\t" {
		how = append(how, fmt.Sprintf("fields end with %q", d))
	}
	if r.Seen.Encoding != "" {
		how = append(how, r.Seen.Encoding)
	}
	if r.Seen.Compression != "" {
		how = append(how, r.Seen.Compression)
	}
	if r.Seen.Sheet != "" {
		how = append(how, fmt.Sprintf("sheet %q", r.Seen.Sheet))
	}
	line(w, "%s: %s (%s)", r.name(), terminal.Plural(r.Count, "row"), strings.Join(how, ", "))
	if r.Other {
		r.seen(w)
		return
	}
	for _, note := range r.Seen.Notes {
		line(w, "  %s", note)
	}
	if r.Invalid > 0 {
		line(w, "  %s cannot be used: a run reports them", terminal.Plural(r.Invalid, "row"))
	}
	table := terminal.NewTable(w)
	for _, c := range r.Seen.Columns {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", terminal.Shorten(c.Name, 30), r.role(c), values(c, r.Seen.Rows), example(c))
	}
	_ = table.Flush() // w is a terminal or a file whose own errors show elsewhere
	r.guesses(w)
	r.seen(w)
}

// name is how the rows are called.
func (r *Rows) name() string {
	if r.Form.Where[0] != "" {
		return fmt.Sprintf("%s, %s %q", r.Path, r.Form.Where[0], r.Form.Where[1])
	}
	return r.Path
}

// guesses says what was taken for what, what came second, and how to say it otherwise.
func (r *Rows) guesses(w io.Writer) {
	or := func(name, second string) string {
		if second == "" || second == name {
			return cmp.Or(clean(name), "no column")
		}
		return fmt.Sprintf("%s, or else in %s", clean(name), clean(second))
	}
	line(w, "  the text is in %s; the label in %s. Otherwise: --column text=NAME --column label=NAME (label= for none)", or(r.Mapping.Text, r.Second.Text), or(r.Mapping.Label, r.Second.Label))
}

// seen says what was found in the texts and labels.
func (r *Rows) seen(w io.Writer) {
	if r.Count == 0 {
		return
	}
	line(w, "  texts: a median of %d characters, the longest %d%s", r.Median, r.Longest, spoken(r.Languages))
	if len(r.Labels) > 0 {
		first, last := r.Labels[0], r.Labels[len(r.Labels)-1]
		line(w, "  labels: %d, from %q in %s to %q in %s", len(r.Labels), clean(first.Name), terminal.Plural(first.Rows, "row"), clean(last.Name), terminal.Plural(last.Rows, "row"))
		var rare []string
		for _, l := range slices.Backward(r.Labels) {
			if l.Rows < few {
				rare = append(rare, fmt.Sprintf("%q", clean(l.Name)))
			}
		}
		if n := len(rare); n > 0 {
			line(w, "  %s fewer than %d rows: %s", have(n, "label"), few, list(rare))
		}
		if r.Unlabelled > 0 {
			line(w, "  %s no label", have(r.Unlabelled, "row"))
		}
		if !r.Labelled() {
			line(w, "  column %q does not look like labels: they hardly come again (--column label=%s takes it all the same)", clean(r.Mapping.Label), clean(r.Mapping.Label))
		}
	}
	if r.Duplicates > 0 {
		text := fmt.Sprintf("  %s a text that another has", have(r.Duplicates, "row"))
		if r.Contradicting > 0 && len(r.Labels) > 0 {
			text += fmt.Sprintf("; %s several labels", have(r.Contradicting, "text"))
		}
		line(w, "%s", text)
	}
}

// role says what a column is used as.
func (r *Rows) role(c source.Column) string {
	switch c.Name {
	case r.Mapping.Text:
		return "text"
	case r.Mapping.Label:
		return "label"
	case r.Mapping.ID:
		return "id"
	}
	return "-"
}

func values(c source.Column, rows int) string {
	what := terminal.Plural(c.Distinct, "value")
	if c.Numeric {
		what = terminal.Plural(c.Distinct, "number")
	}
	if c.Empty > 0 {
		what += fmt.Sprintf(", %d of %d empty", c.Empty, rows)
	}
	return what
}

func example(c source.Column) string {
	if len(c.Values) == 0 {
		return ""
	}
	return terminal.Shorten(c.Values[0], 40)
}

func (d *Documents) describe(w io.Writer) {
	var kinds []string
	for _, suffix := range slices.SortedFunc(maps.Keys(d.Suffixes), func(a, b string) int { return d.Suffixes[b] - d.Suffixes[a] }) {
		name := suffix
		if name == "" {
			name = "without a suffix"
		}
		kinds = append(kinds, fmt.Sprintf("%d %s", d.Suffixes[suffix], clean(name)))
	}
	line(w, "%s: %s (%s)", d.Path, terminal.Plural(d.Files, "document"), list(kinds))
	line(w, "  texts: a mean of %d characters%s", d.Characters/d.Read, spoken(d.Languages))
	for i, f := range d.Unusable {
		if i == 3 {
			line(w, "  ... and %d more that cannot be used", len(d.Unusable)-i)
			break
		}
		line(w, "  %s cannot be used: %v", f.ID, f.Err)
	}
}

// spoken is a list of languages.
func spoken(of []language.Share) string {
	var all []string
	for _, l := range of {
		all = append(all, fmt.Sprintf("%s %.0f %%", named(l.Language), 100*l.Share))
	}
	if len(all) == 0 {
		return ""
	}
	return "; " + strings.Join(all, ", ")
}

// list is the first few of several things.
func list(all []string) string {
	const most = 6
	if more := len(all) - most; more > 0 {
		return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(all, ", ")
}

func have(n int, name string) string {
	if n == 1 {
		return terminal.Plural(n, name) + " has"
	}
	return terminal.Plural(n, name) + " have"
}

// line writes a line without what a terminal would obey.
func line(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, terminal.Line(clean(fmt.Sprintf(format, args...))))
}
