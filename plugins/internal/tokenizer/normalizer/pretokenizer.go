package normalizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// This file splits normalised texts into words as the "pre_tokenizer" of a
// tokenizer.json says.
//
// Classes of characters come from Go's tables, which differ from those of the tokenizers
// library for characters of the last years. A type that the package does not know is
// refused by its name.

// behavior is what becomes of the matches of a delimiter.
type behavior byte

const (
	removed behavior = iota
	isolated
	contiguous         // neighbouring matches are one part
	mergedWithPrevious // a match ends the part before it
	mergedWithNext     // a match begins the part behind it
)

// UnmarshalText reads the name that the library has for a behavior.
func (b *behavior) UnmarshalText(text []byte) error {
	for i, name := range []string{"Removed", "Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext"} {
		if string(text) == name {
			*b = behavior(i)
			return nil
		}
	}
	return fmt.Errorf("behavior %q is not supported", text)
}

// splitter cuts one text at matches, which are told to it in order.
type splitter struct {
	behavior
	text   string
	first  bool
	yield  Part
	start  int  // of the part that is held back
	end    int  // up to where the text is read
	match  bool // whether what was read last is a match
	invert bool
}

// add reads up to byte end, which is a match or not.
func (s *splitter) add(end int, match bool) bool {
	if end == s.end {
		return true
	}
	match = match != s.invert
	at, last := s.end, s.match
	s.end, s.match = end, match
	switch s.behavior {
	case isolated:
		return s.part(at)
	case removed:
		if match {
			s.start = end
			return true
		}
		return s.part(at)
	case contiguous:
		if at > 0 && match != last {
			return s.part2(s.start, at)
		}
	case mergedWithPrevious:
		switch {
		case match && !last:
			return s.part(s.start)
		case s.start < at:
			return s.part2(s.start, at) && (!match || s.part(at))
		case match:
			return s.part(at)
		}
	case mergedWithNext:
		if !match {
			return s.part(s.start)
		}
		if s.start < at {
			return s.part2(s.start, at)
		}
	}
	return true
}

// part yields what was read from byte start on.
func (s *splitter) part(start int) bool { return s.part2(start, s.end) }

func (s *splitter) part2(start, end int) bool {
	s.start = end
	return s.yield(s.text[start:end], s.first && start == 0)
}

// close reads the rest, which is no match, and yields what was held back.
func (s *splitter) close() bool {
	if !s.add(len(s.text), false) {
		return false
	}
	if s.behavior != removed && s.start < len(s.text) {
		return s.part(s.start)
	}
	return true
}

// PreTokenizer splits texts. It is read-only and safe for concurrent use.
type PreTokenizer struct{ steps []splitStep }

// Part receives a part of a text, and whether it begins where the whole text does. It
// returns false where it wants no more.
type Part func(part string, first bool) bool

// splitStep is one of the library's types.
type splitStep interface {
	// split calls yield with the parts of a text, as long as it returns true, and returns what
	// it returned last. Parts may be empty.
	split(text string, first bool, yield Part) bool
	// cuts reports whether a part ends before every single space between ASCII letters.
	cuts() bool
	// keeps reports whether other steps may have that property after this one.
	keeps() bool
}

// NewPreTokenizer reads the "pre_tokenizer" of a tokenizer.json, which may be null: then the text is
// one word.
func NewPreTokenizer(raw json.RawMessage) (*PreTokenizer, error) {
	p := &PreTokenizer{}
	if err := p.read(raw, 0); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *PreTokenizer) read(raw json.RawMessage, depth int) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var f struct {
		Type  string
		Parts []json.RawMessage `json:"pretokenizers"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	if f.Type == "Sequence" {
		if depth == maxDepth {
			return fmt.Errorf("more than %d sequences in each other", maxDepth)
		}
		for _, part := range f.Parts {
			if err := p.read(part, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	s, err := newSplitStep(f.Type, raw)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Type, err)
	}
	if p.steps = append(p.steps, s); len(p.steps) > maxSteps {
		return fmt.Errorf("more than %d steps", maxSteps)
	}
	return nil
}

func newSplitStep(kind string, raw json.RawMessage) (splitStep, error) {
	switch kind {
	case "BertPreTokenizer":
		return bertSplit{}, nil
	case "Whitespace":
		return whitespace{}, nil
	case "WhitespaceSplit":
		return whitespaceSplit, nil
	case "Punctuation":
		return newPunctuation(raw)
	case "Digits":
		return newDigits(raw)
	case "Split":
		return newSplit(raw)
	case "Metaspace":
		return newMetaspace(raw)
	case "ByteLevel":
		return newByteLevel(raw)
	case "":
		return nil, errors.New("a pre-tokenizer without a type is not supported")
	}
	return nil, errors.New("this type of pre-tokenizer is not supported")
}

// Split calls yield with the words of a normalised text, as long as it returns true, and
// returns what it returned last. first says that the text is the beginning of the input.
func (p *PreTokenizer) Split(text string, first bool, yield func(word string) bool) bool {
	return text == "" || p.split(p.steps, text, first, yield)
}

func (p *PreTokenizer) split(steps []splitStep, text string, first bool, yield func(string) bool) bool {
	if len(steps) == 0 {
		return yield(text)
	}
	if len(steps) == 1 {
		return steps[0].split(text, first, func(part string, _ bool) bool { return part == "" || yield(part) })
	}
	return steps[0].split(text, first, func(part string, first bool) bool {
		return part == "" || p.split(steps[1:], part, first, yield)
	})
}

// BERT reports whether p is the BertPreTokenizer.
func (p *PreTokenizer) BERT() bool {
	return len(p.steps) == 1 && p.steps[0] == splitStep(bertSplit{})
}

// PrefixSpace reports whether p puts a space before texts; ok is false where p is not ByteLevel
// alone.
func (p *PreTokenizer) PrefixSpace() (prefix, ok bool) {
	if len(p.steps) != 1 {
		return false, false
	}
	b, ok := p.steps[0].(byteLevel)
	return b.prefix, ok
}

// Cuts reports whether a text that is cut before a single space between ASCII letters has
// the words of the parts.
func (p *PreTokenizer) Cuts() bool {
	for _, s := range p.steps {
		if s.cuts() {
			return true
		}
		if !s.keeps() {
			return false
		}
	}
	return false
}

// split cuts at the matches of a pattern.
type split struct {
	find     *Pattern
	behavior behavior
	invert   bool
	words    bool // find matches everything, with words that begin with their space
}

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
	find, err := NewPattern(f.Pattern)
	if err != nil {
		return nil, err
	}
	return split{find, *f.Behavior, f.Invert, find.Words() && !f.Invert}, nil
}

func (p split) split(text string, first bool, yield Part) bool {
	s := splitter{behavior: p.behavior, text: text, first: first, yield: yield, invert: p.invert}
	for at := 0; ; {
		start, end := p.find.Next(text, at)
		if start < 0 {
			return s.close()
		}
		if !s.add(start, false) || !s.add(end, true) {
			return false
		}
		at = end
	}
}

func (p split) cuts() bool { return p.words && p.behavior == isolated }
func (p split) keeps() bool {
	return p.find.Local && !p.invert && p.behavior != contiguous && p.behavior != mergedWithPrevious
}

// metaspace writes spaces as a visible character, and splits before it.
type metaspace struct {
	mark   string
	scheme string // where a text without one gets one: always, first, never
	cut    bool
}

func newMetaspace(raw json.RawMessage) (splitStep, error) {
	f := struct {
		Replacement string
		Prefix      *bool  `json:"add_prefix_space"`
		Scheme      string `json:"prepend_scheme"`
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
	}
	return metaspace{f.Replacement, f.Scheme, f.Split == nil || *f.Split}, nil
}

func (m metaspace) split(text string, first bool, yield Part) bool {
	text = strings.ReplaceAll(text, " ", m.mark)
	if m.scheme != "never" && (m.scheme == "always" || first) && !strings.HasPrefix(text, m.mark) {
		text = m.mark + text
	}
	if !m.cut {
		return yield(text, first)
	}
	for start := 0; start < len(text); {
		end := len(text)
		if next := strings.Index(text[start+1:], m.mark); next >= 0 {
			end = start + 1 + next
		}
		if !yield(text[start:end], first && start == 0) {
			return false
		}
		start = end
	}
	return true
}

func (m metaspace) cuts() bool  { return m.cut }
func (m metaspace) keeps() bool { return m.cut }

// byteLevel writes bytes as the characters of byte-level vocabularies, after a split by
// GPT-2's expression where that is wanted.
type byteLevel struct{ prefix, words bool }

var gpt2Pattern = func() *Pattern {
	p, err := CompilePattern(GPT2)
	if err != nil {
		panic(err)
	}
	return p
}()

func newByteLevel(raw json.RawMessage) (splitStep, error) {
	f := struct {
		Prefix bool `json:"add_prefix_space"`
		Regex  bool `json:"use_regex"`
	}{Regex: true}
	err := json.Unmarshal(raw, &f)
	return byteLevel{f.Prefix, f.Regex}, err
}

func (b byteLevel) split(text string, first bool, yield Part) bool {
	if b.prefix && !strings.HasPrefix(text, " ") {
		text = " " + text
	}
	if !b.words {
		return yield(ByteLevel(text), first)
	}
	for at := 0; at < len(text); {
		_, end := gpt2Pattern.Next(text, at)
		if !yield(ByteLevel(text[at:end]), first && at == 0) {
			return false
		}
		at = end
	}
	return true
}

func (b byteLevel) cuts() bool  { return b.words }
func (b byteLevel) keeps() bool { return false }
