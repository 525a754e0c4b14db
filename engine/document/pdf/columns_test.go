package pdf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// drawn shows texts at places: x, y, text, x, y, text ... A character is 6 wide.
func drawn(at ...any) string {
	var b strings.Builder
	b.WriteString("BT /F1 10 Tf\n")
	for i := 0; i < len(at); i += 3 {
		fmt.Fprintf(&b, "1 0 0 1 %v %v Tm (%s) Tj\n", at[i], at[i+1], at[i+2])
	}
	return b.String() + "ET"
}

func TestColumns(t *testing.T) {
	words := func(column string, row int) string { return fmt.Sprintf("%s column, row %d of its text", column, row) }
	var byRow, byColumn, three []any
	var left, right, middle []string
	for row := range 6 {
		l, m, r := words("left", row), words("middle", row), words("right", row)
		byRow = append(byRow, 50, 700-12*row, l, 300, 700-12*row, r)
		three = append(three, 50, 700-12*row, l, 300, 700-12*row, m, 550, 700-12*row, r)
		left, right, middle = append(left, l), append(right, r), append(middle, m)
	}
	for row := range 6 {
		byColumn = append(byColumn, 50, 700-12*row, left[row])
	}
	for row := range 6 {
		byColumn = append(byColumn, 300, 700-12*row, right[row])
	}
	columns := strings.Join(left, "\n") + "\n\n" + strings.Join(right, "\n")
	heading := []any{50, 720, "A heading that stands across both of the columns of it"}
	var table, second []any
	var rows []string
	for row := range 8 {
		table = append(table, 50, 700-12*row, fmt.Sprint("card ", row), 300, 700-12*row, "the fee of a card for a whole year", 600, 700-12*row, fmt.Sprint(10*row))
		rows = append(rows, fmt.Sprintf("card %d the fee of a card for a whole year %d", row, 10*row))
	}
	for _, v := range byRow {
		if y, ok := v.(int); ok && y > 600 {
			v = y - 150
		}
		second = append(second, v)
	}
	for name, c := range map[string]struct {
		at   []any
		want string
	}{
		"row by row":         {byRow, columns},
		"column by column":   {byColumn, columns},
		"three columns":      {three, strings.Join(left, "\n") + "\n\n" + strings.Join(middle, "\n") + "\n\n" + strings.Join(right, "\n")},
		"below a heading":    {append(heading, byRow...), heading[2].(string) + "\n\n" + columns},
		"around a heading":   {append(append(append([]any{}, byRow...), 50, 580, heading[2]), second...), columns + "\n\n" + heading[2].(string) + "\n\n" + columns},
		"a table":            {table, strings.Join(rows, "\n")},
		"a paragraph":        {[]any{50, 700, "one column of text, and", 230, 700, "another piece of its line", 50, 688, "its second row"}, "one column of text, and another piece of its line\nits second row"},
		"a gutter of spaces": {[]any{50, 700, "Dear Sir,", 50, 676, "all is well."}, "Dear Sir,\n\nall is well."},
	} {
		text, _, err := Text([]byte(pdfOf(drawn(c.at...))), 1<<20, soon())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, text); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A page of more pieces than are looked at is written as it is drawn, each piece once.
func TestManyPieces(t *testing.T) {
	n := maxPieces + 1000
	text, _, err := Text([]byte(pdfOf("BT /F1 10 Tf 50 700 Td "+strings.Repeat("(a) Tj ", n)+" ET")), 20<<20, soon())
	if err != nil || text != strings.Repeat("a", n) {
		t.Errorf("%d bytes of %d, %v", len(text), n, err)
	}
}

// FuzzColumns looks for places that lose a piece, or double it. The library below breaks on many
// texts: package apart is for that.
func FuzzColumns(f *testing.F) {
	f.Add([]byte("\x01\x01\x30\x80\x01\x30\x01\x10\x30\x80\x10\x30"))
	f.Fuzz(func(t *testing.T, places []byte) {
		var pieces []piece
		for i := 0; i+2 < len(places); i += 3 {
			x, y, wide := float64(places[i]), float64(places[i+1]), float64(places[i+2])
			pieces = append(pieces, piece{fmt.Sprint("a piece of some length ", i), x, y, x + wide, y, 10})
		}
		texts := func(all []piece) (texts []string) {
			for _, p := range all {
				texts = append(texts, p.text)
			}
			slices.Sort(texts)
			return texts
		}
		ordered := make([]piece, 0, len(pieces))
		if len(pieces) > 0 {
			cut(rowsOf(pieces), 0, func(p piece) { ordered = append(ordered, p) })
		}
		if !slices.Equal(texts(ordered), texts(pieces)) || !slices.Equal(texts(inColumns(pieces)), texts(pieces)) {
			t.Errorf("%v became %v", pieces, ordered)
		}
	})
}
