package tokenizer

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/tokenizer/normalizer"
)

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
