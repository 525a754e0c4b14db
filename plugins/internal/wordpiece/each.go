package wordpiece

import (
	"strings"
	"unicode/utf8"
)

// Each calls begin with the byte of text at which each of its tokens begins, in order
// and each byte once, without a limit and without special tokens. A word that is too
// long for the model counts as words of the greatest length. The tokens of a character
// that has several begin at its bytes, and are not more than these.
func (t *Tokenizer) Each(text string, begin func(at int)) {
	var from []int // the byte of text for each byte of a normalised field that is not ASCII
	at := 0
	for at < len(text) {
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
			field := text[at:stop]
			var normal string
			if normal, from = normaliseAt(field, from[:0]); normal != "" {
				t.eachOf(normal, from, at, begin)
			}
			at = stop
		}
	}
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

// normaliseAt normalises a field character by character. from[i] is the byte of
// the field that byte i of the result is from; it is empty where they are equal.
func normaliseAt(field string, from []int) (string, []int) {
	plain := true
	for i := 0; i < len(field) && plain; i++ {
		plain = field[i] > ' ' && field[i] < 0x7f
	}
	if plain {
		return strings.ToLower(field), from
	}
	var b strings.Builder
	for i := 0; i < len(field); {
		_, n := utf8.DecodeRuneInString(field[i:])
		part := normalise(field[i : i+n])
		b.WriteString(part)
		k := -1 // the character of part
		for j := range len(part) {
			if utf8.RuneStart(part[j]) {
				k++
			}
			from = append(from, i+min(k, n-1))
		}
		i += n
	}
	return b.String(), from
}

// eachOf calls begin with the tokens of one normalised field that starts at byte
// at of the text.
func (t *Tokenizer) eachOf(field string, from []int, at int, begin func(at int)) {
	last := -1
	mark := func(i int) {
		if len(from) > 0 {
			i = from[i]
		}
		if i > last {
			begin(at + i)
			last = i
		}
	}
	for i := 0; i < len(field); {
		n := wordLen(field[i:])
		for word := field[i : i+n]; word != ""; {
			short := firstCharacters(word, maxWord)
			t.pieces(short, i, mark)
			i += len(short)
			word = word[len(short):]
		}
	}
}

// pieces calls mark with the beginning of each piece of a word at offset, or with
// offset alone where it is unknown.
func (t *Tokenizer) pieces(word string, offset int, mark func(int)) {
	var starts [maxWord]int
	count, pieces := 0, t.first
	for at := 0; at < len(word); {
		_, n := longestPrefix(pieces, word[at:])
		if n == 0 {
			mark(offset)
			return
		}
		starts[count] = offset + at
		count++
		at, pieces = at+n, t.rest
	}
	for _, s := range starts[:count] {
		mark(s)
	}
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
