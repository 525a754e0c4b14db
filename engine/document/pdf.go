package document

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/ledongthuc/pdf"
)

// pdfTime is how long one PDF may take.
const pdfTime = 30 * time.Second

var (
	errPDFLong = fmt.Errorf("its PDF is too long, or takes longer than %v", pdfTime)
	errPDFBare = errors.New("its PDF holds no text, pictures of it perhaps")
)

// readPDF returns the text of a PDF of at most about so many bytes, with a form
// feed between pages, and its title. The library may panic, ask for any amount of
// memory, or never end.
func readPDF(raw []byte, most int64, stop time.Time) (text, title string, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("its PDF cannot be read: %v", why)
		}
	}()
	r, err := pdf.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return "", "", fmt.Errorf("its PDF cannot be read: %w", err)
	}
	var b strings.Builder
	var tree pdfTree
	tree.collect(r.Trailer().Key("Root").Key("Pages"), pdf.Value{}, 0)
	for n, page := range tree.pages {
		if time.Now().After(stop) || int64(b.Len()) > most {
			return "", "", errPDFLong
		}
		if n > 0 {
			b.WriteString("\n\f")
		}
		if page.contents.IsNull() {
			continue
		}
		p := pdfPage{out: &b, most: most, stop: stop, resources: page.fonts, fonts: map[string]*pdfFont{}, matrix: unit6, line: unit6, scale: 1}
		pdf.Interpret(page.contents, p.do)
	}
	if strings.TrimSpace(b.String()) == "" {
		return "", "", errPDFBare
	}
	title = strings.Join(strings.Fields(r.Trailer().Key("Info").Key("Title").Text()), " ")
	return strings.ToValidUTF8(b.String(), "\uFFFD"), strings.ToValidUTF8(title, "\uFFFD"), nil
}

// pdfTree collects pages. Unlike the reader's own walk, it ends in a tree that leads back
// to itself.
type pdfTree struct {
	pages   []struct{ contents, fonts pdf.Value }
	visited int
}

func (t *pdfTree) collect(node, resources pdf.Value, depth int) {
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

// affine is a matrix as PDF writes it: a b c d e f.
type affine [6]float64

var unit6 = affine{1, 0, 0, 1, 0, 0}

// moved is the matrix after a translation in its own space.
func (m affine) moved(x, y float64) affine {
	m[4], m[5] = m[4]+x*m[0]+y*m[2], m[5]+x*m[1]+y*m[3]
	return m
}

// pdfPage follows the text operators of a page (ISO 32000-1, 9.4) far enough to know
// where words and lines end.
type pdfPage struct {
	out       *strings.Builder
	most      int64
	stop      time.Time
	resources pdf.Value
	fonts     map[string]*pdfFont

	font                 *pdfFont
	size, leading, scale float64
	spacing, wordSpacing float64
	matrix, line         affine
	shown                bool    // something was on this page
	endX, endY           float64 // where it ended
}

func (p *pdfPage) do(stack *pdf.Stack, op string) {
	if int64(p.out.Len()) > p.most || time.Now().After(p.stop) {
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

func (p *pdfPage) next(x, y float64) {
	p.line = p.line.moved(x, y)
	p.matrix = p.line
}

// show adds text, after a space or line ends where it does not touch the text before.
func (p *pdfPage) show(codes string) {
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
	switch along, across := x-p.endX, math.Abs(y-p.endY); {
	case !p.shown:
	case across > 1.8*height:
		p.out.WriteString("\n\n")
	case across > 0.5*height || along < -height:
		p.out.WriteByte('\n')
	case along > 0.15*height:
		p.out.WriteByte(' ')
	}
	p.out.WriteString(text)
	width, count, spaces := p.font.width(codes)
	p.matrix = p.matrix.moved((width/1000*p.size+float64(count)*p.spacing+float64(spaces)*p.wordSpacing)*p.scale, 0)
	p.shown, p.endX, p.endY = true, p.matrix[4], p.matrix[5]
}

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl")

// pdfFont is a font with its widths read once, in thousandths of its size.
type pdfFont struct {
	encoding pdf.TextEncoding
	bytes    int // of a code
	first    int
	widths   []float64       // of simple fonts, from first
	wide     map[int]float64 // of others
	missing  float64
}

func (p *pdfPage) fontOf(name string) *pdfFont {
	if f, ok := p.fonts[name]; ok {
		return f
	}
	source := pdf.Font{V: p.resources.Key(name)}
	f := &pdfFont{encoding: source.Encoder(), bytes: 1, first: source.FirstChar(), widths: source.Widths(), missing: 500}
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

// readWide reads the widths of a composite font: c [w ...] or from to w.
func (f *pdfFont) readWide(w pdf.Value) {
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

// width adds up the widths of codes, and counts them and the spaces among them.
func (f *pdfFont) width(codes string) (width float64, count, spaces int) {
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
