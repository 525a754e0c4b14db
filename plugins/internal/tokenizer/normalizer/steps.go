package normalizer

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/tokenizer/bert"
	"github.com/racflow/racflow/plugins/internal/tokenizer/charsmap"
)

type bertStep struct{ bert.Normalizer }

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
	n := bert.Normalizer{Clean: f.Clean, Chinese: f.Chinese, Strip: f.Lower, Lower: f.Lower}
	if f.Strip != nil {
		n.Strip = *f.Strip
	}
	return bertStep{n}, nil
}

func (b bertStep) apply(text string, _ Edges) (string, bool) {
	_, size := utf8.DecodeRuneInString(text)
	return b.Normalizer.String(text), b.Normalizer.String(text[:size]) == ""
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
				b = bert.AppendLower(b, r)
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
	table, err := charsmap.New(f.Table)
	if err != nil {
		return nil, err
	}
	return mapped{table.Normalize}, nil
}
