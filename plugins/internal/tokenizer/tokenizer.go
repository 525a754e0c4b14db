package tokenizer

import (
	"math"
	"strings"
	"unicode/utf8"

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
	return normalizer.IsSpace(r) && (r >= 0xa0 || r == ' ' || r == '\t' || r == '\n' || r == '\r')
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

// block is about how many bytes of a text are read at once.
const block = 2 << 10

// Encode returns the ids of a text with the special tokens around it, at most limit in
// all: the text is cut on the right. A limit without room for the special tokens has these
// alone.
func (t *Tokenizer) Encode(text string, limit int) []int32 {
	parts := t.template.single
	room := max(0, limit-added(parts))
	ids := make([]int32, 0, min(room+8, 32+len(text)/3))
	for _, p := range parts {
		if p.ids != nil {
			ids = append(ids, p.ids...)
			continue
		}
		end := len(ids) + room
		if ids = t.appendText(ids, text, end); len(ids) > end {
			ids = ids[:end]
		}
	}
	return ids
}

// EncodePair returns the ids of two texts with the special tokens between and around them,
// at most limit in all: the longer text is cut on the right until it is as short as the
// other, then both. ids[second:] are of segment 1; the model's template says from where
// on, and second is len(ids) where it knows no segments.
func (t *Tokenizer) EncodePair(a, b string, limit int) (ids []int32, second int) {
	parts := t.template.pair
	room := max(0, limit-added(parts))
	texts := [2][]int32{t.appendText(nil, a, room+1), t.appendText(nil, b, room+1)}
	if room%2 == 1 && min(len(texts[0]), len(texts[1])) > room {
		// The odd token is the longer text's: both are read to their ends.
		texts = [2][]int32{t.appendText(nil, a, math.MaxInt), t.appendText(nil, b, math.MaxInt)}
	}
	n := longestFirst(len(texts[0]), len(texts[1]), room)
	ids = make([]int32, 0, n[0]+n[1]+added(parts))
	second = -1
	for _, p := range parts {
		if second < 0 && p.kind == 1 {
			second = len(ids)
		}
		if p.ids != nil {
			ids = append(ids, p.ids...)
		} else {
			ids = append(ids, texts[p.text][:n[p.text]]...)
		}
	}
	if second < 0 {
		second = len(ids)
	}
	return ids, second
}

// longestFirst shares room out between two texts of a and b tokens, as the library does.
func longestFirst(a, b, room int) [2]int {
	if a+b <= room {
		return [2]int{a, b}
	}
	short := min(a, b)
	long := max(short, room-short)
	if short+long > room {
		short, long = room/2, room/2+room%2
	}
	if a > b {
		return [2]int{long, short}
	}
	return [2]int{short, long}
}

// appendText appends the ids of a text, up to limit or somewhat more.
func (t *Tokenizer) appendText(ids []int32, text string, limit int) []int32 {
	for at := 0; at < len(text) && len(ids) < limit; {
		end := len(text)
		if t.blocks {
			end = blockEnd(text, at)
		}
		ids = t.appendBlock(ids, text[at:end], normalizer.Edges{Start: at > 0, End: end < len(text)}, limit)
		at = end
	}
	return ids
}

// blockEnd is the next single space between ASCII letters after a block from byte at.
func blockEnd(text string, at int) int {
	letter := func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
	for i := at + block; i < len(text)-1; i++ {
		if text[i] == ' ' && letter(text[i-1]) && letter(text[i+1]) {
			return i
		}
	}
	return len(text)
}

// appendBlock appends the ids of a part of a text, which begins and ends at edges in it.
func (t *Tokenizer) appendBlock(ids []int32, s string, e normalizer.Edges, limit int) []int32 {
	if !utf8.ValidString(s) {
		s = strings.Map(func(r rune) rune { return r }, s) // bytes that are no UTF-8 become U+FFFD
	}
	for at := 0; at < len(s) && len(ids) < limit; {
		f, ok := t.added.next(s, at)
		if !ok {
			f.start, f.end = len(s), len(s)
		}
		if at < f.start {
			ids = t.appendPlain(ids, s[at:f.start], normalizer.Edges{Start: e.Start && at == 0, End: e.End && f.start == len(s)}, !e.Start && at == 0, limit)
		}
		if ok && len(ids) < limit {
			ids = append(ids, f.id)
		}
		at = f.end
	}
	return ids
}

// appendPlain appends the ids of text without special tokens. first says that the whole
// text begins with it.
func (t *Tokenizer) appendPlain(ids []int32, s string, e normalizer.Edges, first bool, limit int) []int32 {
	add := func(w string) bool {
		ids = t.model.Append(ids, w, limit)
		return len(ids) < limit
	}
	if t.bert != nil {
		t.bert.Words(s, add)
		return ids
	}
	s, kept := t.normalizer.String(s, e)
	for at := 0; at < len(s) && len(ids) < limit; {
		f, ok := t.normalized.next(s, at)
		if !ok {
			f.start, f.end = len(s), len(s)
		}
		if at < f.start {
			t.words.Split(s[at:f.start], first && kept && at == 0, add)
		}
		if ok && len(ids) < limit {
			ids = append(ids, f.id)
		}
		at = f.end
	}
	return ids
}

// Tokenizer turns texts into ids. It is read-only and safe for concurrent use.
type Tokenizer struct {
	added      *addedTokens // found in the text as it is
	normalized *addedTokens // found in the normalised text
	normalizer *normalizer.Normalizer
	words      *normalizer.PreTokenizer
	model      model
	template   template

	bert        *normalizer.Bert // that of normalizer and words, where these are BERT's
	pieces      *WordPiece       // model, where bert is set and that is WordPiece
	blocks      bool             // texts may be read in blocks
	size        int
	fingerprint string
}

// model divides words into tokens.
type model interface {
	// Append appends the ids of one word; it may stop once ids has limit elements or more.
	Append(ids []int32, word string, limit int) []int32
	// ID returns the id of a token.
	ID(token string) (int32, bool)
	// Size is the highest id plus one.
	Size() int
}

// Size is the number of ids, which run from 0 to Size-1. Not each of them needs to be a
// token's.
func (t *Tokenizer) Size() int { return t.size }

// Fingerprint returns the SHA-256, in hexadecimal, of what the ids depend on: of the parts
// of tokenizer.json without its truncation, padding and decoder, or of vocab.txt.
func (t *Tokenizer) Fingerprint() string { return t.fingerprint }

// finish sets what follows from the other fields.
func (t *Tokenizer) finish() {
	t.size = max(t.model.Size(), t.added.size, t.normalized.size)
	if t.words.BERT() && len(t.normalized.tokens) == 0 {
		if t.bert = t.normalizer.BERT(); t.bert != nil {
			t.pieces, _ = t.model.(*WordPiece)
		}
	}
	t.blocks = t.normalizer.Local() && t.words.Cuts() && t.added.local() && t.normalized.local()
}
