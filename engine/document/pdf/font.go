package pdf

import (
	"strings"

	"github.com/ledongthuc/pdf"
)

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl")

// font is a font with its widths read once, in thousandths of its size.
type font struct {
	encoding pdf.TextEncoding
	bytes    int // of a code
	first    int
	widths   []float64       // of simple fonts, from first
	wide     map[int]float64 // of others
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

// readWide reads the widths of a composite font: c [w ...] or from to w.
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

// width adds up the widths of codes, and counts them and the spaces among them.
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
