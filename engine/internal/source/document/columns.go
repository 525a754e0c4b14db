package document

import (
	"cmp"
	"slices"
	"unicode"
)

// This file orders the lines of a page with columns, which a PDF may draw row by row. It returns them column by column,
// with a line across columns before everything below the line. It cuts the page at white space as in a recursive XY-cut
// (Nagy and Seth, "Hierarchical representation of optically scanned documents", ICPR 1984). But it accepts a gutter
// only if many rows have text of some length, mostly of one length, on both sides: so a table stays in rows.

// piece is a word and its place, in points. A line of a page is a slice of pieces.
type piece struct {
	text             string
	x, endX, y, high float64
	spacing          float64 // between its letters
	turned           bool    // not written from left to right
}

const (
	maxColumns = 4   // depth of nested cuts
	gutterRows = 4   // fewest rows beside a gutter
	gutterWide = 0.7 // narrowest gutter, relative to the height of the text
	longCell   = 20  // letters and digits: with a lower median on one side, a gutter separates cells of a table
	likeRows   = 0.8 // with a lower quotient of the quartiles, too
)

// inColumns returns lines in reading order. Lines without columns keep their order.
func inColumns(lines [][]piece, depth int) (ordered [][]piece) {
	at, ok := gutter(lines)
	if !ok || depth == maxColumns {
		return lines
	}
	var left, right [][]piece
	flush := func() {
		ordered = slices.Concat(ordered, inColumns(left, depth+1), inColumns(right, depth+1))
		left, right = nil, nil
	}
	for _, line := range lines {
		before, behind, crosses := split(line, at)
		if crosses {
			flush()
			ordered = append(ordered, line)
			continue
		}
		if len(before) > 0 {
			left = append(left, before)
		}
		if len(behind) > 0 {
			right = append(right, behind)
		}
	}
	flush()
	return ordered
}

// gutter returns the position between columns that most lines leave free between texts.
func gutter(lines [][]piece) (at float64, ok bool) {
	type edge struct {
		x    float64
		open int
	}
	var edges []edge
	for _, line := range lines {
		for i, p := range line[1:] {
			if end := line[i].endX; p.x-end >= gutterWide*p.high {
				edges = append(edges, edge{end, 1}, edge{p.x, -1})
			}
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.x, b.x) })
	open, most := 0, 0
	for i, e := range edges[:max(0, len(edges)-1)] {
		if open += e.open; open > most && edges[i+1].x > e.x {
			most, at = open, (e.x+edges[i+1].x)/2
		}
	}
	if most < gutterRows {
		return 0, false
	}
	across := 0
	var left, right []int // letters on each side of the gutter, by line
	for _, line := range lines {
		before, behind, crosses := split(line, at)
		if crosses {
			across++
		} else if len(before) > 0 && len(behind) > 0 {
			left, right = append(left, letters(before)), append(right, letters(behind))
		}
	}
	return at, len(left) >= max(gutterRows, across) && filled(left) && filled(right)
}

// filled reports whether the rows of a column have the lengths of running text.
func filled(rows []int) bool {
	slices.Sort(rows)
	n := len(rows)
	return rows[n/2] >= longCell && float64(rows[n/4]) >= likeRows*float64(rows[3*n/4])
}

// letters counts letters and digits, but not dots: a leader of dots may connect two columns.
func letters(line []piece) (n int) {
	for _, p := range line {
		for _, r := range p.text {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				n++
			}
		}
	}
	return n
}

// split returns the words of a line before and behind a position, and whether a word crosses the position.
func split(line []piece, at float64) (before, behind []piece, crosses bool) {
	for _, p := range line {
		crosses = crosses || p.turned || p.x < at && p.endX > at
		if p.endX <= at {
			before = append(before, p)
		} else {
			behind = append(behind, p)
		}
	}
	return before, behind, crosses
}
