package source

import (
	"fmt"
	"strings"
)

// missing is the error of a file that has no column with the text. It proposes the mapping
// that would probably work.
func missing(names []string, m Mapping) error {
	advice := "Add a header line, or name the column that holds the text"
	if guess := byName(names); guess.Text != "" {
		if guess.Label == m.Label {
			guess.Label = ""
		}
		advice = fmt.Sprintf("On the command line, %s may be what you want; in a file, %s", guess.flags(), guess.arguments())
	}
	return fmt.Errorf("there is no column %q; the columns are %s. %s", m.Text, quoteAll(names), advice)
}

// flags are the flags of a command that give a mapping.
func (m Mapping) flags() string {
	return m.written("--column %s=%s", " ", func(name string) string {
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
