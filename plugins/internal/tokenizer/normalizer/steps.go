package normalizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
)

// byteLevel returns the text with each byte replaced by its character in byte-level vocabularies (Radford et al.
// 2019).
func byteLevel(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/2)
	for i := range len(text) {
		b.WriteString(byteNames[text[i]])
	}
	return b.String()
}

// byteNames are the characters of bytes: printable Latin-1 characters stand for themselves, other bytes get
// characters from U+0100 on.
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

// form returns the step that writes texts in one of Unicode's normalisation forms. It removes the joiner that package
// norm adds after every 30 marks in a row, since Unicode's forms do not have it.
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

// isMark reports whether the library's StripAccents drops r. The library has the marks of Unicode 9, two signs that
// were marks then, and lacks one that has become a mark.
func isMark(r rune) bool {
	return r >= 0x300 && (unicode.IsMark(r) && unicode.Is(unicode9, r) && r != 0x111c9 || r == 0x1cf2 || r == 0x1cf3)
}

// unicode9 holds the characters in the tables of StripAccents.
var unicode9 = rangetable.Assigned("9.0.0")

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
	b := make([]byte, 0, len(text)+8)
	for _, r := range text {
		b = appendLower(b, r)
	}
	return string(b)
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
	table, err := newCharsmap(f.Table)
	if err != nil {
		return nil, err
	}
	return table.normalize, nil
}

// newStrip reads a step that drops white space at the ends of a text.
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

// newPrepend reads a step that puts a string before a text.
func newPrepend(raw json.RawMessage) (step, error) {
	var f struct{ Prepend string }
	err := json.Unmarshal(raw, &f)
	if len(f.Prepend) > maxString {
		err = fmt.Errorf("the string is longer than %d bytes", maxString)
	}
	return func(text string) string { return f.Prepend + text }, err
}

// newReplace reads a step that replaces the matches of a pattern by a string.
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
	find, err := newPattern(f.Pattern)
	return func(text string) string { return find.Replace(text, f.Content) }, err
}
