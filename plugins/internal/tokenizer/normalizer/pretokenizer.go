package normalizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file splits normalised texts into words by the "pre_tokenizer" of a tokenizer.json.
//
// Character classes come from Go's tables, which differ from the tokenizers library's for recently added characters.
// Unknown types are refused by name.

// PreTokenizer splits texts. It is read-only and safe for concurrent use.
type PreTokenizer struct{ steps []splitStep }

// behavior says what happens to the matches of a delimiter.
type behavior byte

const (
	removed behavior = iota
	isolated
	contiguous         // adjacent matches form one part
	mergedWithPrevious // a match ends the previous part
	mergedWithNext     // a match begins the next part
)

// UnmarshalText reads the library's name of a behavior.
func (b *behavior) UnmarshalText(text []byte) error {
	i := slices.Index([]string{"Removed", "Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext"}, string(text))
	if i < 0 {
		return fmt.Errorf("behavior %q is not supported", text)
	}
	*b = behavior(i)
	return nil
}

// cut appends the parts of a text, given its matches and the text between them.
func (b behavior) cut(parts []part, of part, spans []span) []part {
	begin := 0 // of the part that the current span belongs to
	for i, s := range spans {
		last := i == len(spans)-1
		switch {
		case b == removed && s.match:
			begin = s.end
			continue
		case last:
		case b == contiguous && spans[i+1].match == s.match:
			continue
		case b == mergedWithPrevious && !s.match && spans[i+1].match:
			continue
		case b == mergedWithNext && s.match && !spans[i+1].match:
			continue
		}
		parts = append(parts, part{of.text[begin:s.end], of.first && begin == 0})
		begin = s.end
	}
	return parts
}

// part is a part of a text.
type part struct {
	text  string
	first bool // it begins at the beginning of the whole text
}

// splitStep is one of the library's types. It appends the parts of a part that is not empty.
type splitStep func(parts []part, of part) []part

// NewPreTokenizer reads the "pre_tokenizer" of a tokenizer.json. If it is null, the text is one word. normalized says
// whether there is a normalizer.
func NewPreTokenizer(raw json.RawMessage, normalized bool) (*PreTokenizer, error) {
	p := &PreTokenizer{}
	err := eachStep(raw, "pretokenizers", 0, func(kind string, raw json.RawMessage) error {
		s, err := newSplitStep(kind, raw, normalized)
		if err != nil {
			return err
		}
		if p.steps = append(p.steps, s); len(p.steps) > maxSteps {
			return fmt.Errorf("more than %d steps", maxSteps)
		}
		return nil
	})
	return p, err
}

func newSplitStep(kind string, raw json.RawMessage, normalized bool) (splitStep, error) {
	switch kind {
	case "BertPreTokenizer":
		return bertSplit, nil
	case "Whitespace":
		return whitespace, nil
	case "WhitespaceSplit":
		return charClass{IsSpace, removed}.split, nil
	case "Punctuation":
		f := struct{ Behavior behavior }{isolated}
		err := json.Unmarshal(raw, &f)
		return charClass{isPunct, f.Behavior}.split, err
	case "Digits":
		return newDigits(raw)
	case "Split":
		return newSplit(raw)
	case "Metaspace":
		return newMetaspace(raw, normalized)
	case "ByteLevel":
		return newByteLevel(raw)
	}
	return nil, errors.New("this type of pre-tokenizer is not supported")
}

// Split yields the words of a normalised text. first says whether the text is the beginning of the input.
func (p *PreTokenizer) Split(text string, first bool) iter.Seq[string] {
	parts := []part{{text, first}}
	for _, step := range p.steps {
		next := make([]part, 0, len(parts)+len(text)/perWord)
		for _, of := range parts {
			if of.text != "" {
				next = step(next, of)
			}
		}
		parts = next
	}
	return func(yield func(string) bool) {
		for _, of := range parts {
			if of.text != "" && !yield(of.text) {
				return
			}
		}
	}
}

// perWord is about how many bytes a word has.
const perWord = 5

// newSplit reads a step that cuts at the matches of a pattern.
func newSplit(raw json.RawMessage) (splitStep, error) {
	var f struct {
		Pattern  json.RawMessage
		Behavior *behavior
		Invert   bool
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	if f.Behavior == nil {
		return nil, errors.New("it has no behavior")
	}
	find, err := newPattern(f.Pattern)
	if err != nil {
		return nil, err
	}
	return func(parts []part, of part) []part {
		spans := find.spans(of.text)
		for i := range spans {
			spans[i].match = spans[i].match != f.Invert
		}
		return f.Behavior.cut(parts, of, spans)
	}, nil
}

// newMetaspace reads a step that writes spaces as a visible character, and splits before it.
func newMetaspace(raw json.RawMessage, normalized bool) (splitStep, error) {
	f := struct {
		Replacement string
		Prefix      *bool  `json:"add_prefix_space"`
		Scheme      string `json:"prepend_scheme"` // when to prepend the character to a text without it: always, first, never
		Split       *bool
	}{Scheme: "always"}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	if f.Prefix != nil && !*f.Prefix {
		f.Scheme = "never"
	}
	switch {
	case utf8.RuneCountInString(f.Replacement) != 1:
		return nil, errors.New("replacement is not one character")
	case f.Scheme != "always" && f.Scheme != "first" && f.Scheme != "never":
		return nil, errors.New("prepend_scheme is not always, first or never")
	case f.Scheme == "first" && normalized: // the library does so only if the normalizer keeps the first character
		return nil, errors.New(`prepend_scheme "first" behind a normalizer is not supported`)
	}
	mark := pattern{text: f.Replacement}
	return func(parts []part, of part) []part {
		of.text = strings.ReplaceAll(of.text, " ", f.Replacement)
		if f.Scheme != "never" && (f.Scheme == "always" || of.first) && !strings.HasPrefix(of.text, f.Replacement) {
			of.text = f.Replacement + of.text
		}
		if f.Split != nil && !*f.Split {
			return append(parts, of)
		}
		return mergedWithNext.cut(parts, of, mark.spans(of.text))
	}, nil
}

// newByteLevel reads a step that writes bytes as the characters of byte-level vocabularies. If the file says so, it
// first splits by GPT-2's expression.
func newByteLevel(raw json.RawMessage) (splitStep, error) {
	f := struct {
		Prefix bool `json:"add_prefix_space"`
		Regex  bool `json:"use_regex"`
	}{Regex: true}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	words, err := compilePattern(gpt2)
	return func(parts []part, of part) []part {
		if f.Prefix && !strings.HasPrefix(of.text, " ") {
			of.text = " " + of.text
		}
		before := len(parts)
		if parts = append(parts, of); f.Regex {
			parts = isolated.cut(parts[:before], of, words.spans(of.text))
		}
		for i := before; i < len(parts); i++ {
			parts[i].text = byteLevel(parts[i].text)
		}
		return parts
	}, err
}

// bertSplit splits at white space, and before and after punctuation.
func bertSplit(parts []part, of part) []part {
	start := 0
	for i, r := range of.text {
		space := IsSpace(r)
		if !space && !isPunct(r) {
			continue
		}
		parts = append(parts, part{of.text[start:i], of.first && start == 0})
		start = i + utf8.RuneLen(r)
		if !space {
			parts = append(parts, part{of.text[i:start], of.first && i == 0})
		}
	}
	return append(parts, part{of.text[start:], of.first && start == 0})
}

// whitespace splits into runs of word characters, and runs of other characters that are no white space.
func whitespace(parts []part, of part) []part {
	const space, word, other = 0, 1, 2
	start, kind := 0, space
	end := func(at int) {
		if kind != space {
			parts = append(parts, part{of.text[start:at], of.first && start == 0})
		}
	}
	for i, r := range of.text {
		k := other
		switch {
		case IsSpace(r):
			k = space
		case IsWord(r):
			k = word
		}
		if k != kind {
			end(i)
			start, kind = i, k
		}
	}
	end(len(of.text))
	return parts
}

// IsWord reports whether r is a word character by Unicode's rule for regular expressions (UTS 18, annex C).
func IsWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}

// charClass splits at characters of a class.
type charClass struct {
	in       func(rune) bool
	behavior behavior
}

func newDigits(raw json.RawMessage) (splitStep, error) {
	var f struct {
		Individual bool `json:"individual_digits"`
	}
	err := json.Unmarshal(raw, &f)
	if f.Individual {
		return charClass{unicode.IsNumber, isolated}.split, err
	}
	return charClass{unicode.IsNumber, contiguous}.split, err
}

func (c charClass) split(parts []part, of part) []part {
	var spans []span
	at := 0
	for i, r := range of.text {
		if c.in(r) {
			if at < i {
				spans = append(spans, span{at, i, false})
			}
			at = i + utf8.RuneLen(r)
			spans = append(spans, span{i, at, true})
		}
	}
	if at < len(of.text) {
		spans = append(spans, span{at, len(of.text), false})
	}
	return c.behavior.cut(parts, of, spans)
}
