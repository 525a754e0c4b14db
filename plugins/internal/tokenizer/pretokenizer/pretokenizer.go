package pretokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

// maxSteps bounds the length of a sequence, and maxDepth sequences in sequences.
const (
	maxSteps = 64
	maxDepth = 8
)

// PreTokenizer splits texts. It is read-only and safe for concurrent use.
type PreTokenizer struct{ steps []step }

// Part receives a part of a text, and whether it begins where the whole text does. It
// returns false where it wants no more.
type Part func(part string, first bool) bool

// step is one of the library's types.
type step interface {
	// split calls yield with the parts of a text, as long as it returns true, and returns what
	// it returned last. Parts may be empty.
	split(text string, first bool, yield Part) bool
	// cuts reports whether a part ends before every single space between ASCII letters.
	cuts() bool
	// keeps reports whether other steps may have that property after this one.
	keeps() bool
}

// New reads the "pre_tokenizer" of a tokenizer.json, which may be null: then the text is
// one word.
func New(raw json.RawMessage) (*PreTokenizer, error) {
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
	s, err := newStep(f.Type, raw)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Type, err)
	}
	if p.steps = append(p.steps, s); len(p.steps) > maxSteps {
		return fmt.Errorf("more than %d steps", maxSteps)
	}
	return nil
}

func newStep(kind string, raw json.RawMessage) (step, error) {
	switch kind {
	case "BertPreTokenizer":
		return bertStep{}, nil
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

func (p *PreTokenizer) split(steps []step, text string, first bool, yield func(string) bool) bool {
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
func (p *PreTokenizer) BERT() bool { return len(p.steps) == 1 && p.steps[0] == step(bertStep{}) }

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
