package source

import (
	"cmp"
	"fmt"
	"strings"
)

// missing is the error of a file that has no column with the text. It proposes the mapping
// that would probably work.
func (f *file) missing(names []string) error {
	guess := byName(names)
	if f.patient { // it can be looked at once more
		if seen, err := Sniff(f.path, f.form); err == nil && seen.Rows > 0 {
			guess = Guess(seen)
			var found []string
			for _, c := range seen.Columns {
				found = append(found, c.Name)
			}
			if len(found) > 0 { // a file may have no rows
				names = found
			}
		}
	}
	if position(names, f.mapping.Label) >= 0 {
		guess.Label = ""
	}
	if position(names, f.mapping.ID) >= 0 {
		guess.ID = ""
	}
	var advice []string
	if guess.Text != "" {
		guess.Flag = f.mapping.Flag
		advice = append(advice, fmt.Sprintf("This may be what you want: %s on the command line, or %s in the block", guess.Flags(), guess.arguments()))
	}
	if f.form.Format.OfTexts() && byName(names).Text == "" {
		advice = append(advice, `If the first line is a row already, add a header line that names the columns, or write header = false and name columns by position, as text = "1"`)
	}
	if len(advice) == 0 {
		advice = append(advice, "Name the column that holds the text: "+Mapping{Text: "NAME", Flag: f.mapping.Flag}.Flags())
	}
	return fmt.Errorf("there is no column %q; the columns are %s. %s", f.mapping.Text, quoteAll(names), strings.Join(advice, ". "))
}

// Flags are the flags of a command that give a mapping.
func (m Mapping) Flags() string {
	return m.written(cmp.Or(m.Flag, "--column")+" %s=%s", " ", func(name string) string {
		if strings.ContainsAny(name, " \t\n'\"\\$`*?[]{}()<>|&;!#~") {
			return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
		}
		return name
	})
}

// arguments are the arguments of a block that give a mapping.
func (m Mapping) arguments() string {
	return m.written("%s = %s", ", ", func(name string) string { return fmt.Sprintf("%q", name) })
}

func (m Mapping) written(format, between string, quote func(string) string) string {
	var all []string
	for _, c := range []struct{ means, column string }{{"text", m.Text}, {"label", m.Label}, {"id", m.ID}} {
		if c.column != "" {
			all = append(all, fmt.Sprintf(format, c.means, quote(c.column)))
		}
	}
	return strings.Join(all, between)
}
