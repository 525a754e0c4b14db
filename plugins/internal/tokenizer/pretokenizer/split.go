package pretokenizer

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/tokenizer/normalizer"
	"github.com/racflow/racflow/plugins/internal/tokenizer/pattern"
)

// split cuts at the matches of a pattern.
type split struct {
	find     *pattern.Pattern
	behavior behavior
	invert   bool
	words    bool // find matches everything, with words that begin with their space
}

func newSplit(raw json.RawMessage) (step, error) {
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
	find, err := pattern.New(f.Pattern)
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

func newMetaspace(raw json.RawMessage) (step, error) {
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

var gpt2 = func() *pattern.Pattern {
	p, err := pattern.Compile(pattern.GPT2)
	if err != nil {
		panic(err)
	}
	return p
}()

func newByteLevel(raw json.RawMessage) (step, error) {
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
		return yield(normalizer.ByteLevel(text), first)
	}
	for at := 0; at < len(text); {
		_, end := gpt2.Next(text, at)
		if !yield(normalizer.ByteLevel(text[at:end]), first && at == 0) {
			return false
		}
		at = end
	}
	return true
}

func (b byteLevel) cuts() bool  { return b.words }
func (b byteLevel) keeps() bool { return false }
