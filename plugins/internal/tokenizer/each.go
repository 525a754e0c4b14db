package tokenizer

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/tokenizer/bert"
	"github.com/racflow/racflow/plugins/internal/tokenizer/normalizer"
)

// Each calls begin with the byte of text at which each of its tokens begins, in order
// and each byte once, without a limit and without the template's special tokens.
//
// For BERT's tokenizers, a word that is too long for the model counts as words of the
// greatest length, and the tokens of a character that has several begin at its bytes, and
// are not more than these. For others, the tokens of what stands between two white spaces
// are counted and spread evenly over its bytes.
func (t *Tokenizer) Each(text string, begin func(at int)) {
	m := marker{Tokenizer: t, begin: begin}
	for at := 0; at < len(text); {
		r, n := utf8.DecodeRuneInString(text[at:])
		if isSpace(r) {
			at += n
			continue
		}
		end := at + strings.IndexFunc(text[at:], isSpace)
		if end < at {
			end = len(text)
		}
		for at < end { // long fields by parts, so that memory stays small
			stop := cutField(text, at, end)
			if t.pieces != nil {
				m.pieces(text[at:stop], at)
			} else {
				m.spread(text, at, stop)
			}
			at = stop
		}
	}
}

// isSpace reports whether r separates words. Control characters do not, apart from those
// of lines: BERT drops them, which joins their neighbours.
func isSpace(r rune) bool {
	return bert.IsSpace(r) && (r >= 0xa0 || r == ' ' || r == '\t' || r == '\n' || r == '\r')
}

// cutField is the end of a part of the field from at that is short enough, at a
// character's boundary.
func cutField(text string, at, end int) int {
	const part = 1 << 12
	if end-at <= part {
		return end
	}
	stop := at + part
	for stop > at+1 && !utf8.RuneStart(text[stop]) {
		stop--
	}
	return stop
}

// marker calls begin for the tokens of fields.
type marker struct {
	*Tokenizer
	begin  func(at int)
	ids    []int32
	from   []int // the byte of a field for each byte of it as normalised; empty where they are equal
	starts []int
}

// spread marks the tokens of text[at:end], which the model reads with the space before
// it.
func (m *marker) spread(text string, at, end int) {
	field := text[at:end]
	if at > 0 && text[at-1] == ' ' {
		field = text[at-1 : end]
	}
	m.ids = m.appendBlock(m.ids[:0], field, normalizer.Edges{Start: at > 0, End: end < len(text)}, math.MaxInt)
	n := end - at
	count := min(len(m.ids), n)
	for i := range count {
		m.begin(at + i*n/count)
	}
}

// pieces marks the pieces of a field that begins at byte at.
func (m *marker) pieces(field string, at int) {
	normal := m.normalise(field)
	last := -1
	mark := func(i int) {
		if len(m.from) > 0 {
			i = m.from[i]
		}
		if i > last {
			m.begin(at + i)
			last = i
		}
	}
	for i := 0; i < len(normal); {
		n := m.bert.WordLen(normal[i:])
		for word := normal[i : i+n]; word != ""; {
			short := firstCharacters(word, m.Tokenizer.pieces.MaxWord())
			m.starts = m.Tokenizer.pieces.Pieces(m.starts[:0], short)
			for _, start := range m.starts {
				mark(i + start)
			}
			i += len(short)
			word = word[len(short):]
		}
	}
}

// normalise normalises a field character by character, and sets from.
func (m *marker) normalise(field string) string {
	m.from = m.from[:0]
	n := *m.bert
	n.Chinese = false // no spaces
	plain := true
	for i := 0; i < len(field) && plain; i++ {
		plain = field[i] > ' ' && field[i] < 0x7f
	}
	if plain && n.Lower {
		return strings.ToLower(field)
	}
	if plain {
		return field
	}
	var b strings.Builder
	for i := 0; i < len(field); {
		size := 1
		if field[i] >= utf8.RuneSelf {
			_, size = utf8.DecodeRuneInString(field[i:])
		}
		part := n.String(field[i : i+size])
		b.WriteString(part)
		k := -1 // the character of part
		for j := range len(part) {
			if utf8.RuneStart(part[j]) {
				k++
			}
			m.from = append(m.from, i+min(k, size-1))
		}
		i += size
	}
	return b.String()
}

// firstCharacters returns the first n characters of s.
func firstCharacters(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}
