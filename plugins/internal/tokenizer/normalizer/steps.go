package normalizer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// ByteLevel returns text with each byte as the character that byte-level vocabularies
// write for it (Radford et al. 2019).
func ByteLevel(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/2)
	for i := range len(text) {
		b.WriteString(byteNames[text[i]])
	}
	return b.String()
}

// byteNames are the characters of bytes: printable ones of Latin-1 for themselves, the
// others from U+0100 on.
var byteNames = func() (names [256]string) {
	next := rune(256)
	for c := range names {
		r := rune(c)
		if !('!' <= r && r <= '~' || 0xa1 <= r && r <= 0xac || 0xae <= r) {
			r = next
			next++
		}
		names[c] = string(r)
	}
	return names
}()

// form is one of Unicode's normalisation forms.
type form norm.Form

func (f form) apply(text string, _ Edges) (string, bool) { return f.string(text), false }
func (form) local() bool                                 { return true }

// string returns text in the form. Package norm breaks sequences of more than 30 marks by
// a joiner, which Unicode's forms do not know: texts with such are put together here.
func (f form) string(text string) string {
	const joiner = "\u034f"
	s := norm.Form(f).String(text)
	if strings.Count(s, joiner) == strings.Count(text, joiner) {
		return s
	}
	decompose, compose := norm.NFD, f == form(norm.NFC) || f == form(norm.NFKC)
	if f == form(norm.NFKC) || f == form(norm.NFKD) {
		decompose = norm.NFKD
	}
	var chars []rune
	for _, r := range text {
		chars = append(chars, []rune(decompose.String(string(r)))...)
	}
	sortMarks(chars)
	if compose {
		chars = composed(chars)
	}
	return string(chars)
}

// class is the canonical combining class.
func class(r rune) uint8 { return norm.NFD.PropertiesString(string(r)).CCC() }

// sortMarks puts the marks between others into the order of their classes.
func sortMarks(chars []rune) {
	for start := 0; start < len(chars); start++ {
		end := start
		for end < len(chars) && class(chars[end]) != 0 {
			end++
		}
		slices.SortStableFunc(chars[start:end], func(a, b rune) int { return cmp.Compare(class(a), class(b)) })
		start = end
	}
}

// composed joins marks with what they stand on, where a character for both exists, in
// place.
func composed(chars []rune) []rune {
	out := chars[:0]
	starter, last := -1, uint8(0) // in out; the class of the mark that was kept behind it
	for _, r := range chars {
		c := class(r)
		if starter >= 0 && (last < c || last == 0 && starter == len(out)-1) {
			if pair := []rune(norm.NFC.String(string([]rune{out[starter], r}))); len(pair) == 1 {
				out[starter] = pair[0]
				continue
			}
		}
		if c == 0 {
			starter = len(out)
		}
		last = c
		out = append(out, r)
	}
	return out
}

// isMark reports whether the library's StripAccents drops r: it knows the marks of Unicode
// 9, and two signs that were marks then.
func isMark(r rune) bool {
	return r >= 0x300 && (unicode.IsMark(r) && !unicode.Is(newerMarks, r) || r == 0x1cf2 || r == 0x1cf3)
}

// newerMarks are today's marks that the library keeps, recorded from it over all
// characters.
var newerMarks = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x07fd, 0x07fd, 1}, {0x0898, 0x089f, 1}, {0x08ca, 0x08d3, 1}, {0x09fe, 0x09fe, 1},
		{0x0afa, 0x0aff, 1}, {0x0b55, 0x0b55, 1}, {0x0c04, 0x0c04, 1}, {0x0c3c, 0x0c3c, 1},
		{0x0cf3, 0x0cf3, 1}, {0x0d00, 0x0d00, 1}, {0x0d3b, 0x0d3c, 1}, {0x0d81, 0x0d81, 1},
		{0x0eba, 0x0eba, 1}, {0x0ece, 0x0ece, 1}, {0x1715, 0x1715, 1}, {0x180f, 0x180f, 1},
		{0x1abf, 0x1ace, 1}, {0x1cf7, 0x1cf7, 1}, {0x1df6, 0x1dfa, 1}, {0xa82c, 0xa82c, 1},
		{0xa8ff, 0xa8ff, 1},
	},
	R32: []unicode.Range32{
		{0x10d24, 0x10d27, 1}, {0x10eab, 0x10eac, 1}, {0x10efd, 0x10eff, 1}, {0x10f46, 0x10f50, 1},
		{0x10f82, 0x10f85, 1}, {0x11070, 0x11070, 1}, {0x11073, 0x11074, 1}, {0x110c2, 0x110c2, 1},
		{0x11145, 0x11146, 1}, {0x111c9, 0x111c9, 1}, {0x111ce, 0x111cf, 1}, {0x11241, 0x11241, 1},
		{0x1133b, 0x1133b, 1}, {0x1145e, 0x1145e, 1}, {0x1182c, 0x1183a, 1}, {0x11930, 0x11935, 1},
		{0x11937, 0x11938, 1}, {0x1193b, 0x1193e, 1}, {0x11940, 0x11940, 1}, {0x11942, 0x11943, 1},
		{0x119d1, 0x119d7, 1}, {0x119da, 0x119e0, 1}, {0x119e4, 0x119e4, 1}, {0x11a01, 0x11a0a, 1},
		{0x11a33, 0x11a39, 1}, {0x11a3b, 0x11a3e, 1}, {0x11a47, 0x11a47, 1}, {0x11a51, 0x11a5b, 1},
		{0x11a8a, 0x11a99, 1}, {0x11d31, 0x11d36, 1}, {0x11d3a, 0x11d3a, 1}, {0x11d3c, 0x11d3d, 1},
		{0x11d3f, 0x11d45, 1}, {0x11d47, 0x11d47, 1}, {0x11d8a, 0x11d8e, 1}, {0x11d90, 0x11d91, 1},
		{0x11d93, 0x11d97, 1}, {0x11ef3, 0x11ef6, 1}, {0x11f00, 0x11f01, 1}, {0x11f03, 0x11f03, 1},
		{0x11f34, 0x11f3a, 1}, {0x11f3e, 0x11f42, 1}, {0x13440, 0x13440, 1}, {0x13447, 0x13455, 1},
		{0x16f4f, 0x16f4f, 1}, {0x16f7f, 0x16f87, 1}, {0x16fe4, 0x16fe4, 1}, {0x16ff0, 0x16ff1, 1},
		{0x1cf00, 0x1cf2d, 1}, {0x1cf30, 0x1cf46, 1}, {0x1e08f, 0x1e08f, 1}, {0x1e130, 0x1e136, 1},
		{0x1e2ae, 0x1e2ae, 1}, {0x1e2ec, 0x1e2ef, 1}, {0x1e4ec, 0x1e4ef, 1},
	},
}

type bertStep struct{ Bert }

func newBERT(raw json.RawMessage) (step, error) {
	var f struct {
		Clean   bool  `json:"clean_text"`
		Chinese bool  `json:"handle_chinese_chars"`
		Strip   *bool `json:"strip_accents"`
		Lower   bool  `json:"lowercase"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	n := Bert{Clean: f.Clean, Chinese: f.Chinese, Strip: f.Lower, Lower: f.Lower}
	if f.Strip != nil {
		n.Strip = *f.Strip
	}
	return bertStep{n}, nil
}

func (b bertStep) apply(text string, _ Edges) (string, bool) {
	_, size := utf8.DecodeRuneInString(text)
	return b.Bert.String(text), b.Bert.String(text[:size]) == ""
}

func (bertStep) local() bool { return true }

// mapped changes characters, and does not count as dropping the first.
type mapped struct{ change func(string) string }

func (m mapped) apply(text string, _ Edges) (string, bool) { return m.change(text), false }
func (mapped) local() bool                                 { return true }

func lower(text string) string {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			b := append(make([]byte, 0, len(text)+8), text[:i]...)
			for _, r := range text[i:] {
				b = AppendLower(b, r)
			}
			return string(b)
		}
	}
	return text
}

// filter drops characters.
type filter struct{ drop func(rune) bool }

func (f filter) apply(text string, _ Edges) (string, bool) {
	first, _ := utf8.DecodeRuneInString(text)
	return strings.Map(func(r rune) rune {
		if f.drop(r) {
			return -1
		}
		return r
	}, text), f.drop(first)
}

func (filter) local() bool { return true }

// nmt cleans texts as SentencePiece's rule of that name does.
type nmt struct{}

func (nmt) apply(text string, _ Edges) (string, bool) {
	change := func(r rune) rune {
		switch {
		case 1 <= r && r <= 8, r == 0xb, 0xe <= r && r <= 0x1f, r == 0x7f, r == 0x8f, r == 0x9f:
			return -1
		case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, 0x200b <= r && r <= 0x200f,
			r == 0x2028, r == 0x2029, r == '▁', r == 0xfeff, r == 0xfffd:
			return ' '
		}
		return r
	}
	first, _ := utf8.DecodeRuneInString(text)
	return strings.Map(change, text), change(first) < 0
}

func (nmt) local() bool { return true }

// newPrecompiled reads SentencePiece's table of characters.
func newPrecompiled(raw json.RawMessage) (step, error) {
	var f struct {
		Table []byte `json:"precompiled_charsmap"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	table, err := NewCharsmap(f.Table)
	if err != nil {
		return nil, err
	}
	return mapped{table.Normalize}, nil
}

// strip drops white space at the ends of a text.
type strip struct {
	Left  bool `json:"strip_left"`
	Right bool `json:"strip_right"`
}

func newStrip(raw json.RawMessage) (step, error) {
	var s strip
	err := json.Unmarshal(raw, &s)
	return s, err
}

func (s strip) apply(text string, e Edges) (string, bool) {
	length := len(text)
	if s.Left && !e.Start {
		text = strings.TrimLeftFunc(text, IsSpace)
	}
	lost := len(text) < length
	if s.Right && !e.End {
		text = strings.TrimRightFunc(text, IsSpace)
	}
	return text, lost
}

func (strip) local() bool { return true }

// prepend puts a string before a text.
type prepend string

func newPrepend(raw json.RawMessage) (step, error) {
	var f struct{ Prepend string }
	err := json.Unmarshal(raw, &f)
	if len(f.Prepend) > maxString {
		err = fmt.Errorf("the string is longer than %d bytes", maxString)
	}
	return prepend(f.Prepend), err
}

func (p prepend) apply(text string, e Edges) (string, bool) {
	if e.Start {
		return text, false
	}
	return string(p) + text, false
}

func (prepend) local() bool { return true }

// replace puts a string in place of what a pattern matches.
type replace struct {
	find *Pattern
	by   string
}

func newReplace(raw json.RawMessage) (step, error) {
	var f struct {
		Pattern json.RawMessage
		Content string
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	if len(f.Content) > maxString {
		return nil, fmt.Errorf("the content is longer than %d bytes", maxString)
	}
	find, err := NewPattern(f.Pattern)
	return replace{find, f.Content}, err
}

func (r replace) apply(text string, _ Edges) (string, bool) { return r.find.Replace(text, r.by) }

// local of a replacement of spaces needs that they stay what words are cut at.
func (r replace) local() bool {
	_, end := r.find.Next("a b", 0)
	return r.find.Local && (end < 0 || r.by == " " || r.by == "▁")
}
