package document

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ledongthuc/pdf"
)

// This file reads the text of PDF files. It derives words and lines from the positions of text
// operators, and separates pages by a form feed.
//
// It reads columns of text one by one; tables stay in rows.
//
// Forms and rotated text may come out in an odd order; text in pictures is missing. A few hostile
// bytes can make the reader ask for all memory or never end: call it through apart.go.

// piece is the text of one operator and its position.
type piece struct {
	text                   string
	x, y, endX, endY, high float64
}

// Limits for recognising columns.
const (
	maxPieces  = 200_000 // a page with more pieces keeps their order
	maxColumns = 4       // depth of nested cuts
	gutterRows = 4       // fewest rows beside a gutter
	gutterWide = 0.7     // narrowest gutter, relative to the height of the text
	longCell   = 20      // characters: a gutter with a lower median on one side separates cells of a table
)

// inColumns orders the pieces of a page with columns column by column, in whatever order the file draws
// them; a line across columns comes before everything below it. It cuts the page at white
// space as in a recursive XY-cut (Nagy and Seth, "Hierarchical representation of optically scanned
// documents", ICPR 1984), but accepts a gutter only if many rows have text of some length on both
// sides: so a table stays in rows. Pages without columns keep their order.
func inColumns(pieces []piece) []piece {
	if len(pieces) > maxPieces || slices.ContainsFunc(pieces, func(p piece) bool { return p.endY != p.y || p.endX < p.x || p.high <= 0 }) {
		return pieces // rotated, or mirrored
	}
	rows := rowsOf(pieces)
	if _, ok := gutter(rows); !ok {
		return pieces
	}
	ordered := make([]piece, 0, len(pieces))
	cut(rows, 0, func(p piece) { ordered = append(ordered, p) })
	return ordered
}

// rowsOf groups pieces by their baselines, from top to bottom, each row from left to right.
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

// gutter returns the position between columns that most rows leave free between texts.
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
	var left, right []int // characters on each side of the gutter, by row
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

// sides counts the characters of a row before and after a position.
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

// cut calls f with the pieces of rows, in reading order.
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

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl")

// font is a font with its widths, read once, in thousandths of its size.
type font struct {
	encoding pdf.TextEncoding
	bytes    int // bytes of a code
	first    int
	widths   []float64       // of a simple font, from first
	wide     map[int]float64 // of a composite font, by code
	missing  float64
}

func (p *page) fontOf(name string) *font {
	if f, ok := p.fonts[name]; ok {
		return f
	}
	source := pdf.Font{V: p.resources.Key(name)}
	f := &font{encoding: source.Encoder(), bytes: 1, first: source.FirstChar(), widths: source.Widths(), missing: 500}
	if source.V.Key("Subtype").Name() == "Type0" {
		f.bytes, f.wide, f.missing = 2, map[int]float64{}, 1000
		below := source.V.Key("DescendantFonts").Index(0)
		if dw := below.Key("DW"); !dw.IsNull() {
			f.missing = dw.Float64()
		}
		f.readWide(below.Key("W"))
	}
	p.fonts[name] = f
	return f
}

// readWide reads the widths of a composite font. An entry of w is either a first code and an array of
// widths, or a first code, a last code and their width.
func (f *font) readWide(w pdf.Value) {
	const codes = 1 << 16
	for i := 0; i+1 < w.Len() && len(f.wide) < codes; {
		from, second := int(w.Index(i).Int64()), w.Index(i+1)
		if second.Kind() == pdf.Array {
			for j := range min(second.Len(), codes) {
				f.wide[from+j] = second.Index(j).Float64()
			}
			i += 2
			continue
		}
		width := w.Index(i + 2).Float64()
		for code := from; code <= min(int(second.Int64()), from+codes); code++ {
			f.wide[code] = width
		}
		i += 3
	}
}

// width adds up the widths of codes, and counts the codes and the spaces.
func (f *font) width(codes string) (width float64, count, spaces int) {
	for i := 0; i+f.bytes <= len(codes); i += f.bytes {
		count++
		code := int(codes[i])
		w := f.missing
		if f.bytes == 2 {
			code = code<<8 | int(codes[i+1])
			if known, ok := f.wide[code]; ok {
				w = known
			}
		} else {
			if code == ' ' {
				spaces++
			}
			if at := code - f.first; at >= 0 && at < len(f.widths) {
				w = f.widths[at]
			}
		}
		width += w
	}
	return width, count, spaces
}

// affine is a matrix in PDF's order: a b c d e f.
type affine [6]float64

var unit6 = affine{1, 0, 0, 1, 0, 0}

// moved returns the matrix after a translation in its own space.
func (m affine) moved(x, y float64) affine {
	m[4], m[5] = m[4]+x*m[0]+y*m[2], m[5]+x*m[1]+y*m[3]
	return m
}

// page interprets the text operators of a page (ISO 32000-1, 9.4) far enough to find the ends of
// words and lines.
type page struct {
	out       *strings.Builder
	most      int64
	stop      time.Time
	resources pdf.Value
	fonts     map[string]*font

	font                 *font
	size, leading, scale float64
	spacing, wordSpacing float64
	matrix, line         affine
	pieces               []piece // shown so far
	held                 int     // bytes of pieces, and of the space between them
	shown                bool    // some pieces are written
}

func (p *page) do(stack *pdf.Stack, op string) {
	if int64(p.out.Len()+p.held) > p.most || time.Now().After(p.stop) {
		panic("it is too long")
	}
	args := make([]pdf.Value, stack.Len())
	for i := len(args) - 1; i >= 0; i-- {
		args[i] = stack.Pop()
	}
	number := func(i int) float64 {
		if i >= len(args) {
			return 0
		}
		return args[i].Float64()
	}
	switch op {
	case "BT":
		p.matrix, p.line = unit6, unit6
	case "Tf":
		if len(args) == 2 {
			p.font, p.size = p.fontOf(args[0].Name()), number(1)
		}
	case "Tc":
		p.spacing = number(0)
	case "Tw":
		p.wordSpacing = number(0)
	case "Tz":
		p.scale = number(0) / 100
	case "TL":
		p.leading = number(0)
	case "Td":
		p.next(number(0), number(1))
	case "TD":
		p.leading = -number(1)
		p.next(number(0), number(1))
	case "T*":
		p.next(0, -p.leading)
	case "Tm":
		for i := range p.line {
			p.line[i] = number(i)
		}
		p.matrix = p.line
	case "\"":
		p.wordSpacing, p.spacing = number(0), number(1)
		fallthrough
	case "'":
		p.next(0, -p.leading)
		fallthrough
	case "Tj":
		if len(args) > 0 {
			p.show(args[len(args)-1].RawString())
		}
	case "TJ":
		if len(args) == 0 {
			return
		}
		for i := range args[0].Len() {
			if part := args[0].Index(i); part.Kind() == pdf.String {
				p.show(part.RawString())
			} else {
				p.matrix = p.matrix.moved(-part.Float64()/1000*p.size*p.scale, 0)
			}
		}
	}
}

func (p *page) next(x, y float64) {
	p.line = p.line.moved(x, y)
	p.matrix = p.line
}

// show adds a piece of text.
func (p *page) show(codes string) {
	if p.font == nil || codes == "" {
		return
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, ligatures.Replace(p.font.encoding.Decode(codes)))
	height := math.Abs(p.size) * math.Hypot(p.matrix[2], p.matrix[3])
	x, y := p.matrix[4], p.matrix[5]
	width, count, spaces := p.font.width(codes)
	p.matrix = p.matrix.moved((width/1000*p.size+float64(count)*p.spacing+float64(spaces)*p.wordSpacing)*p.scale, 0)
	p.pieces = append(p.pieces, piece{text, x, y, p.matrix[4], p.matrix[5], height})
	if p.held += len(text) + 1; len(p.pieces) > maxPieces {
		p.write(p.pieces[:maxPieces])
		p.pieces = slices.Clone(p.pieces[maxPieces-1:]) // the first one is written already
	}
}

// write writes pieces. It puts a space or line ends between two that do not touch.
func (p *page) write(pieces []piece) {
	for i, at := range pieces {
		if i == 0 {
			if !p.shown {
				p.out.WriteString(at.text)
			}
			p.shown = true
			continue
		}
		before := pieces[i-1]
		switch along, across := at.x-before.endX, math.Abs(at.y-before.endY); {
		case across > 1.8*at.high:
			p.out.WriteString("\n\n")
		case across > 0.5*at.high || along < -at.high:
			p.out.WriteByte('\n')
		case along > 0.15*at.high:
			p.out.WriteByte(' ')
		}
		p.out.WriteString(at.text)
	}
}

var errBare = errors.New("its PDF holds no text, pictures of it perhaps; recognise its text (OCR) first, or leave it out with exclude")

// PDF returns the text of a PDF, about most bytes at most, with a form feed between pages, and its
// title. It is an apartReader.
func PDF(raw []byte, most int64, stop time.Time) (text, title string, err error) {
	r, err := pdf.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return "", "", fmt.Errorf("its PDF cannot be read: %w; leave it out with exclude", err)
	}
	var b strings.Builder
	var tree catalog
	tree.collect(r.Trailer().Key("Root").Key("Pages"), pdf.Value{}, 0)
	for n, leaf := range tree.pages {
		if time.Now().After(stop) || int64(b.Len()) > most {
			return "", "", tooLong("PDF")
		}
		if n > 0 {
			b.WriteString("\n\f")
		}
		if leaf.contents.IsNull() {
			continue
		}
		p := page{out: &b, most: most, stop: stop, resources: leaf.fonts, fonts: map[string]*font{}, matrix: unit6, line: unit6, scale: 1}
		pdf.Interpret(leaf.contents, p.do)
		if !p.shown {
			p.pieces = inColumns(p.pieces)
		}
		p.write(p.pieces)
	}
	if strings.TrimSpace(b.String()) == "" {
		return "", "", errBare
	}
	title = strings.Join(strings.Fields(r.Trailer().Key("Info").Key("Title").Text()), " ")
	return strings.ToValidUTF8(b.String(), "\uFFFD"), strings.ToValidUTF8(title, "\uFFFD"), nil
}

// catalog collects pages. Unlike the library's own walk, it ends even if the tree is circular.
type catalog struct {
	pages   []struct{ contents, fonts pdf.Value }
	visited int
}

func (t *catalog) collect(node, resources pdf.Value, depth int) {
	const deepest, largest = 64, 100_000
	if t.visited++; depth > deepest || t.visited > largest {
		return
	}
	if own := node.Key("Resources"); !own.IsNull() { // pages inherit them
		resources = own
	}
	kids := node.Key("Kids")
	if kids.Kind() != pdf.Array {
		t.pages = append(t.pages, struct{ contents, fonts pdf.Value }{node.Key("Contents"), resources.Key("Font")})
		return
	}
	for i := range kids.Len() {
		t.collect(kids.Index(i), resources, depth+1)
	}
}
