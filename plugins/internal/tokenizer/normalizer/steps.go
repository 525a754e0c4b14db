package normalizer

import (
	"encoding/json"
	"fmt"
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

// form returns the step that writes texts in one of Unicode's normalisation forms. Package norm puts
// a joiner behind every 30 marks in a row, which Unicode's forms do not know.
func form(f norm.Form) step {
	const joiner = "\u034f"
	return func(text string) string {
		s := f.String(text)
		if strings.Contains(text, joiner) {
			return s
		}
		return strings.ReplaceAll(s, joiner, "")
	}
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

// ReadBERT reads a BertNormalizer.
func ReadBERT(raw json.RawMessage) (*Bert, error) {
	var f struct {
		Clean   bool  `json:"clean_text"`
		Chinese bool  `json:"handle_chinese_chars"`
		Strip   *bool `json:"strip_accents"`
		Lower   bool  `json:"lowercase"`
	}
	err := json.Unmarshal(raw, &f)
	n := Bert{Clean: f.Clean, Chinese: f.Chinese, Strip: f.Lower, Lower: f.Lower}
	if f.Strip != nil {
		n.Strip = *f.Strip
	}
	return &n, err
}

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

func stripAccents(text string) string {
	return strings.Map(func(r rune) rune {
		if isMark(r) {
			return -1
		}
		return r
	}, text)
}

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
	return table.Normalize, nil
}

// newStrip reads what drops white space at the ends of a text.
func newStrip(raw json.RawMessage) (step, error) {
	var f struct {
		Left  bool `json:"strip_left"`
		Right bool `json:"strip_right"`
	}
	err := json.Unmarshal(raw, &f)
	return func(text string) string {
		if f.Left {
			text = strings.TrimLeftFunc(text, IsSpace)
		}
		if f.Right {
			text = strings.TrimRightFunc(text, IsSpace)
		}
		return text
	}, err
}

// newPrepend reads what puts a string before a text.
func newPrepend(raw json.RawMessage) (step, error) {
	var f struct{ Prepend string }
	err := json.Unmarshal(raw, &f)
	if len(f.Prepend) > maxString {
		err = fmt.Errorf("the string is longer than %d bytes", maxString)
	}
	return func(text string) string { return f.Prepend + text }, err
}

// newReplace reads what puts a string in place of what a pattern matches.
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
	return func(text string) string { return find.Replace(text, f.Content) }, err
}
