package document

import (
	"strings"
)

// This file writes the parts of Markdown that the readers of other formats need: rows of tables,
// code, headings. It parses none.

// tableRow returns a row of a table, without a line end.
func tableRow(cells []string) string {
	var b strings.Builder
	b.WriteByte('|')
	for _, c := range cells {
		b.WriteByte(' ')
		b.WriteString(strings.ReplaceAll(OneLine(c), "|", `\|`))
		b.WriteString(" |")
	}
	return b.String()
}

// tableRule returns the line below the header of a table with so many columns.
func tableRule(columns int) string { return "|" + strings.Repeat("---|", columns) }

// table returns a table whose first row is the header, with a line end after each row. It leaves
// out empty rows.
func table(rows [][]string) string {
	var b strings.Builder
	for _, cells := range rows {
		if strings.Join(cells, "") == "" {
			continue
		}
		first := b.Len() == 0
		b.WriteString(tableRow(cells) + "\n")
		if first {
			b.WriteString(tableRule(len(cells)) + "\n")
		}
	}
	return b.String()
}

// fence returns fenced code without a line end. The fence is longer than any in the code.
func fence(code, language string) string {
	mark := "```"
	for run := range strings.FieldsFuncSeq(code, func(r rune) bool { return r != '`' }) {
		if len(run) >= len(mark) {
			mark = run + "`"
		}
	}
	return mark + language + "\n" + code + "\n" + mark
}

// Heading returns a heading of a level from 1 to 6; beyond 6 it uses 6.
func Heading(level int, title string) string {
	return strings.Repeat("#", min(max(level, 1), 6)) + " " + OneLine(title)
}

// OneLine replaces each run of white space by one space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
