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

// tableRule returns the line below the header of a table with this many columns.
func tableRule(columns int) string { return "|" + strings.Repeat("---|", columns) }

// table returns a table with its first row as the header, and a line end after each row. It omits empty rows.
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

// grid lays out a table whose cells span columns and rows. It repeats their texts in each place, so that each row can
// be read alone.
type grid struct {
	rows  [][]string
	below []gridCell // by column, cells that reach down from above
	spare *int       // bytes of cells that may still be repeated, in all tables of a file; then no cell is repeated
}

// gridCell is a cell, with its numbers of columns and rows.
type gridCell struct {
	text          string
	columns, rows int
}

const (
	maxSpan = 64 // columns of a cell
	maxRows = 1 << 20
)

// row adds a row.
func (g *grid) row(cells []gridCell) {
	var row []string
	if *g.spare < 0 {
		g.below = nil
	}
	last := len(g.below) - 1
	for ; last >= 0 && g.below[last].rows == 0; last-- {
	}
	for len(cells) > 0 || len(row) <= last {
		switch at := len(row); {
		case at <= last && g.below[at].rows > 0:
			g.below[at].rows--
			row = append(row, g.repeated(g.below[at].text))
		case len(cells) == 0:
			row = append(row, "")
		default:
			c := cells[0]
			cells = cells[1:]
			for i := 0; i < 1 || i < min(c.columns, maxSpan) && *g.spare >= 0; i++ {
				if i > 0 {
					c.text = g.repeated(c.text)
				}
				row = append(row, c.text)
				if c.rows > 1 {
					g.below = append(g.below, make([]gridCell, max(0, len(row)-len(g.below)))...)
					g.below[len(row)-1] = gridCell{text: c.text, rows: c.rows - 1}
				}
			}
		}
	}
	g.rows = append(g.rows, row)
}

// above returns the text in a column of the last row, to be repeated.
func (g *grid) above(column int) string {
	if n := len(g.rows); n > 0 && column < len(g.rows[n-1]) {
		return g.repeated(g.rows[n-1][column])
	}
	return ""
}

func (g *grid) repeated(text string) string {
	if *g.spare -= len(text) + len("|  "); *g.spare < 0 {
		return ""
	}
	return text
}

// tabular reports whether there is more than one row, and more than one column.
func (g *grid) tabular() bool {
	filled, wide := 0, false
	for _, row := range g.rows {
		if strings.Join(row, "") != "" {
			filled, wide = filled+1, wide || len(row) > 1
		}
	}
	return filled > 1 && wide
}

// fence returns fenced code without a line end. The fence is longer than any fence in the code.
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
