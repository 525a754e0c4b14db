package pdf

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/ledongthuc/pdf"
)

// affine is a matrix as PDF writes it: a b c d e f.
type affine [6]float64

var unit6 = affine{1, 0, 0, 1, 0, 0}

// moved is the matrix after a translation in its own space.
func (m affine) moved(x, y float64) affine {
	m[4], m[5] = m[4]+x*m[0]+y*m[2], m[5]+x*m[1]+y*m[3]
	return m
}

// page follows the text operators of a page (ISO 32000-1, 9.4) far enough to know
// where words and lines end.
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
	pieces               []piece // what it shows
	held                 int     // bytes of them, and of what stands between them
	shown                bool    // some of them are written
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
		p.pieces = slices.Clone(p.pieces[maxPieces-1:]) // the first of them is written already
	}
}

// write adds pieces, each after a space or line ends where it does not touch the one before.
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
