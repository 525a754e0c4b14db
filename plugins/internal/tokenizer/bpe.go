package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// This file is the model of byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909) as
// tokenizer.json describes it: the model of RoBERTa, of ModernBERT and of SentencePiece's BPE.
//
// It turns one word into ids and gives the same ids as the tokenizers library, which the test
// data record. What a word is, and how its characters are written (the bytes of byte-level BPE
// among them), is decided before, by normalisers and pre-tokenizers. It does not train, does not
// turn ids into text, and refuses dropout, which makes ids a matter of chance.

// BPE turns words into ids. It is read-only and safe for concurrent use.
type BPE struct {
	ids   map[string]int32
	size  int
	chars []int32 // the ids of the first characters of Unicode, -1 where there is none
	joins map[pair]join

	unk            int32 // -1 where unknown characters are dropped
	fuse           bool  // neighbouring unknown characters become one unknown token
	bytes          *[256]int32
	whole          bool // a word that is a token needs no merges
	prefix, suffix string
}

// Size is the highest id and one.
func (m *BPE) Size() int { return m.size }

// ID returns the id of a token.
func (m *BPE) ID(token string) (int32, bool) {
	id, ok := m.ids[token]
	return id, ok
}

// Append appends the ids of one word. A word of n characters takes n log n steps.
func (m *BPE) Append(ids []int32, word string) []int32 {
	if m.whole {
		if id, ok := m.ids[word]; ok {
			return append(ids, id)
		}
	}
	symbols := make([]int32, 0, short)
	add := func(id int32) { symbols = append(symbols, id) }
	unknown := false // an unknown token waits, to be fused with those behind it
	for at := 0; at < len(word); {
		r, n := utf8.DecodeRuneInString(word[at:])
		id, text := m.character(word, at, n, r)
		at += n
		if id >= 0 {
			if unknown {
				add(m.unk)
				unknown = false
			}
			add(id)
			continue
		}
		if m.bytes != nil && m.known(text) {
			for i := range len(text) {
				add(m.bytes[text[i]])
			}
			continue
		}
		if m.unk >= 0 {
			if unknown && !m.fuse {
				add(m.unk)
			}
			unknown = true
		}
	}
	if unknown {
		add(m.unk)
	}
	return m.merge(ids, symbols)
}

// character returns the id of the character of n bytes at a byte of the word, or -1 and the
// text that was looked for, the affixes of its place in the word included.
func (m *BPE) character(word string, at, n int, r rune) (int32, string) {
	if int(r) < len(m.chars) {
		if id := m.chars[r]; id >= 0 {
			return id, ""
		}
	}
	text := word[at : at+n]
	if m.prefix != "" && at > 0 {
		text = m.prefix + text
	}
	if m.suffix != "" && at+n == len(word) {
		text += m.suffix
	}
	if id, ok := m.ids[text]; ok {
		return id, ""
	}
	return -1, text
}

// known reports whether every byte of text has a token.
func (m *BPE) known(text string) bool {
	for i := range len(text) {
		if m.bytes[text[i]] < 0 {
			return false
		}
	}
	return true
}

const (
	maxID     = 1<<24 - 1 // bounds what is sized by ids
	maxTokens = 1 << 21   // and merges, far above those of the largest models
)

// bpeDescription is the "model" object of tokenizer.json.
type bpeDescription struct {
	Dropout      *float64        `json:"dropout"`
	Unk          *string         `json:"unk_token"`
	Prefix       string          `json:"continuing_subword_prefix"`
	Suffix       string          `json:"end_of_word_suffix"`
	FuseUnk      bool            `json:"fuse_unk"`
	ByteFallback bool            `json:"byte_fallback"`
	IgnoreMerges bool            `json:"ignore_merges"`
	Vocab        json.RawMessage `json:"vocab"`
	Merges       json.RawMessage `json:"merges"`
}

// NewBPE reads the "model" object of a tokenizer.json whose type is BPE.
func NewBPE(raw json.RawMessage) (*BPE, error) {
	var d bpeDescription
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("read the BPE model: %w", err)
	}
	if d.Dropout != nil && *d.Dropout != 0 {
		return nil, fmt.Errorf("the BPE model's dropout of %v, which makes ids a matter of chance, is not supported: set it to null", *d.Dropout)
	}
	if d.Vocab == nil || d.Merges == nil {
		return nil, errors.New("the BPE model lacks its vocab or its merges")
	}
	m := &BPE{unk: -1, fuse: d.FuseUnk, whole: d.IgnoreMerges, prefix: d.Prefix, suffix: d.Suffix}
	if err := m.readVocab(d.Vocab); err != nil {
		return nil, err
	}
	if d.Unk != nil {
		id, ok := m.ids[*d.Unk]
		if !ok {
			return nil, fmt.Errorf("the BPE model's unk_token %q is not in its vocabulary", *d.Unk)
		}
		m.unk = id
	}
	m.index(d.ByteFallback)
	merges, err := m.readMerges(d.Merges)
	if err != nil {
		return nil, err
	}
	m.joins = make(map[pair]join, len(merges))
	for rank, g := range merges {
		m.joins[g.pair] = join{uint32(rank), g.id} // of two merges of a pair the last counts
	}
	return m, nil
}

// readVocab reads the ids of tokens.
func (m *BPE) readVocab(raw json.RawMessage) error {
	m.ids = map[string]int32{}
	err := EachElement(raw, func(member []byte) error {
		token, value, err := ElementOf(member)
		if err != nil {
			return err
		}
		id, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || id < 0 || id > maxID {
			return fmt.Errorf("token %.40q has the id %.40s; ids are whole numbers from 0 to %d", token, value, maxID)
		}
		if m.ids[token] = int32(id); len(m.ids) > maxTokens {
			return fmt.Errorf("it has more than %d tokens", maxTokens)
		}
		m.size = max(m.size, int(id)+1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the BPE model's vocabulary: %w", err)
	}
	taken := make([]bool, m.size)
	for _, id := range m.ids {
		if taken[id] {
			return fmt.Errorf("the BPE model's tokens %.40q have the same id %d", m.named(id), id)
		}
		taken[id] = true
	}
	return nil
}

// named returns the tokens of an id.
func (m *BPE) named(id int32) (tokens []string) {
	for token, other := range m.ids {
		if other == id {
			tokens = append(tokens, token)
		}
	}
	slices.Sort(tokens)
	return tokens
}

// index makes tables of the ids of bytes, and of those of the characters that byte-level BPE
// writes bytes with.
func (m *BPE) index(byteFallback bool) {
	if m.prefix == "" && m.suffix == "" {
		m.chars = make([]int32, 0x180)
		for r := range m.chars {
			m.chars[r] = m.idOr(string(rune(r)))
		}
	}
	if byteFallback {
		m.bytes = new([256]int32)
		for b := range m.bytes {
			m.bytes[b] = m.idOr(fmt.Sprintf("<0x%02X>", b))
		}
	}
}

// idOr returns the id of a token, or -1.
func (m *BPE) idOr(token string) int32 {
	if id, ok := m.ids[token]; ok {
		return id
	}
	return -1
}
