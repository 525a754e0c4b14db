package normalizer

import (
	"encoding/json"
	"unicode"
	"unicode/utf8"
)

// bertSplit splits between white space and around punctuation.
type bertSplit struct{}

func (bertSplit) split(text string, first bool, yield Part) bool {
	start := 0
	for i, r := range text {
		space := IsSpace(r)
		if !space && !IsPunct(r) {
			continue
		}
		if !yield(text[start:i], first && start == 0) {
			return false
		}
		start = i + utf8.RuneLen(r)
		if !space && !yield(text[i:start], first && i == 0) {
			return false
		}
	}
	return yield(text[start:], first && start == 0)
}

func (bertSplit) cuts() bool  { return true }
func (bertSplit) keeps() bool { return true }

// whitespace yields runs of word characters, and of others that are no white space.
type whitespace struct{}

func (whitespace) split(text string, first bool, yield Part) bool {
	const space, word, other = 0, 1, 2
	start, kind := 0, space
	for i, r := range text {
		k := other
		switch {
		case IsSpace(r):
			k = space
		case IsWord(r):
			k = word
		}
		if k == kind {
			continue
		}
		if kind != space && !yield(text[start:i], first && start == 0) {
			return false
		}
		start, kind = i, k
	}
	return kind == space || yield(text[start:], first && start == 0)
}

func (whitespace) cuts() bool  { return true }
func (whitespace) keeps() bool { return true }

// IsWord reports whether r belongs to words by Unicode's rule for regular expressions
// (UTS 18, annex C).
func IsWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}

// charClass splits at characters.
type charClass struct {
	in       func(rune) bool
	behavior behavior
	space    bool // white space is in it, and removed
}

var whitespaceSplit = charClass{IsSpace, removed, true}

func newPunctuation(raw json.RawMessage) (splitStep, error) {
	f := struct{ Behavior behavior }{isolated}
	err := json.Unmarshal(raw, &f)
	return charClass{IsPunct, f.Behavior, false}, err
}

func newDigits(raw json.RawMessage) (splitStep, error) {
	var f struct {
		Individual bool `json:"individual_digits"`
	}
	err := json.Unmarshal(raw, &f)
	if f.Individual {
		return charClass{unicode.IsNumber, isolated, false}, err
	}
	return charClass{unicode.IsNumber, contiguous, false}, err
}

func (c charClass) split(text string, first bool, yield Part) bool {
	s := splitter{behavior: c.behavior, text: text, first: first, yield: yield}
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		if c.in(r) && !(s.add(i, false) && s.add(i+n, true)) {
			return false
		}
		i += n
	}
	return s.close()
}

func (c charClass) cuts() bool  { return c.space }
func (c charClass) keeps() bool { return true }
