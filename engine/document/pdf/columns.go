package pdf

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// piece is a text that one operator shows, and where.
type piece struct {
	text                   string
	x, y, endX, endY, high float64
}

// Limits of what counts as columns.
const (
	maxPieces  = 200_000 // of a page; of one with more the order is not looked at
	maxColumns = 4       // cuts in each other
	gutterRows = 4       // rows that a gutter has at least beside it
	gutterWide = 0.7     // times the height of the text
	longCell   = 20      // characters: what is shorter for the most part is a cell of a table, not a line
)

// inColumns orders the pieces of a page whose columns the file draws row by row: column by
// column, where a line across them comes before what is below it. The page is cut at white
// space as a recursive XY-cut does (Nagy and Seth, "Hierarchical representation of optically
// scanned documents", ICPR 1984), which takes a gutter for one only if many rows have text of
// some length on both sides of it: so a table stays in rows. Pages that are drawn in another
// order keep it.
func inColumns(pieces []piece) []piece {
	if len(pieces) > maxPieces || slices.ContainsFunc(pieces, func(p piece) bool { return p.endY != p.y || p.endX < p.x || p.high <= 0 }) {
		return pieces // rotated, or mirrored
	}
	rows := rowsOf(pieces)
	at, ok := gutter(rows)
	if !ok || !alternates(pieces, rows, at) {
		return pieces
	}
	ordered := make([]piece, 0, len(pieces))
	cut(rows, 0, func(p piece) { ordered = append(ordered, p) })
	return ordered
}

// rowsOf are pieces by their baselines, from the top down and from left to right.
func rowsOf(pieces []piece) (rows [][]piece) {
	sorted := slices.Clone(pieces)
	slices.SortStableFunc(sorted, func(a, b piece) int { return compare(b.y, a.y) })
	for _, p := range sorted {
		if last := len(rows) - 1; last >= 0 && rows[last][0].y-p.y <= 0.5*max(p.high, rows[last][0].high) {
			rows[last] = append(rows[last], p)
		} else {
			rows = append(rows, []piece{p})
		}
	}
	for _, r := range rows {
		slices.SortStableFunc(r, func(a, b piece) int { return compare(a.x, b.x) })
	}
	return rows
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// gutter returns a place between columns: the one that the most rows leave free between texts.
func gutter(rows [][]piece) (at float64, ok bool) {
	type edge struct {
		x    float64
		open int
	}
	var edges []edge
	for _, r := range rows {
		end := r[0].endX
		for _, p := range r[1:] {
			if p.x-end >= gutterWide*p.high {
				edges = append(edges, edge{end, 1}, edge{p.x, -1})
			}
			end = max(end, p.endX)
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return compare(a.x, b.x) })
	open, most := 0, 0
	for i, e := range edges[:max(0, len(edges)-1)] {
		if open += e.open; open > most && edges[i+1].x > e.x {
			most, at = open, (e.x+edges[i+1].x)/2
		}
	}
	if most < gutterRows {
		return 0, false
	}
	beside, across := 0, 0
	var left, right []int // characters of the rows beside it
	for _, r := range rows {
		switch before, behind := sides(r, at); {
		case crosses(r, at):
			across++
		case before > 0 && behind > 0:
			beside++
			left, right = append(left, before), append(right, behind)
		}
	}
	return at, beside >= gutterRows && beside >= across && median(left) >= longCell && median(right) >= longCell
}

func median(of []int) int {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[len(of)/2]
}

// sides are the characters of a row before and behind a place.
func sides(row []piece, at float64) (before, behind int) {
	for _, p := range row {
		if n := utf8.RuneCountInString(strings.TrimSpace(p.text)); p.endX <= at {
			before += n
		} else {
			behind += n
		}
	}
	return before, behind
}

func crosses(row []piece, at float64) bool {
	return slices.ContainsFunc(row, func(p piece) bool { return p.x < at && p.endX > at && strings.TrimSpace(p.text) != "" })
}

// alternates reports whether a page is drawn row by row across a gutter.
func alternates(pieces []piece, rows [][]piece, at float64) bool {
	beside, changes := 0, 0
	for _, r := range rows {
		if before, behind := sides(r, at); before > 0 && behind > 0 && !crosses(r, at) {
			beside++
		}
	}
	for i := range pieces[1:] {
		if pieces[i].endX <= at && pieces[i+1].x >= at {
			changes++
		}
	}
	return 2*changes >= beside
}

// cut calls f with the pieces of rows in their order.
func cut(rows [][]piece, depth int, f func(piece)) {
	at, ok := gutter(rows)
	if !ok || depth == maxColumns {
		for _, r := range rows {
			for _, p := range r {
				f(p)
			}
		}
		return
	}
	var left, right [][]piece
	flush := func() {
		cut(left, depth+1, f)
		cut(right, depth+1, f)
		left, right = nil, nil
	}
	for _, r := range rows {
		if crosses(r, at) {
			flush()
			for _, p := range r {
				f(p)
			}
			continue
		}
		first := slices.IndexFunc(r, func(p piece) bool { return p.endX > at })
		if first < 0 {
			first = len(r)
		}
		if first > 0 {
			left = append(left, r[:first])
		}
		if first < len(r) {
			right = append(right, r[first:])
		}
	}
	flush()
}
