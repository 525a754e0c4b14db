package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// This file is the model of byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909) in the form of
// tokenizer.json: the model of RoBERTa, of ModernBERT and of SentencePiece's BPE.
//
// It converts one word into ids, the same ids as the tokenizers library, which the test data record. Normalisers and
// pre-tokenizers decide before what a word is and how its characters are written (such as the bytes of byte-level
// BPE). The model does not train and does not convert ids into text. It refuses dropout, which makes ids random.

// bpe converts words into ids. It is read-only and safe for concurrent use.
type bpe struct {
	ids   map[string]int32
	size  int
	joins map[pair]join

	unk   int32 // -1: unknown characters are dropped
	fuse  bool  // adjacent unknown characters become one unknown token
	bytes *[256]int32
	whole bool // a word that is a token needs no merges
}

// Size is the highest id plus one.
func (m *bpe) Size() int { return m.size }

// ID returns the id of a token.
func (m *bpe) ID(token string) (int32, bool) {
	id, ok := m.ids[token]
	return id, ok
}

// Append appends the ids of one word. A word of n characters takes n log n steps.
func (m *bpe) Append(ids []int32, word string) []int32 {
	if m.whole {
		if id, ok := m.ids[word]; ok {
			return append(ids, id)
		}
	}
	symbols := make([]int32, 0, short)
	unknown := false // an unknown token is pending, to be fused with following ones
	for at := 0; at < len(word); {
		_, n := utf8.DecodeRuneInString(word[at:])
		text := word[at : at+n]
		id := m.idOr(text)
		at += n
		if id >= 0 {
			if unknown {
				symbols = append(symbols, m.unk)
				unknown = false
			}
			symbols = append(symbols, id)
			continue
		}
		if m.bytes != nil && m.known(text) {
			for i := range len(text) {
				symbols = append(symbols, m.bytes[text[i]])
			}
			continue
		}
		if m.unk >= 0 {
			if unknown && !m.fuse {
				symbols = append(symbols, m.unk)
			}
			unknown = true
		}
	}
	if unknown {
		symbols = append(symbols, m.unk)
	}
	return m.merge(ids, symbols)
}

// known reports whether every byte of text has a token.
func (m *bpe) known(text string) bool {
	for i := range len(text) {
		if m.bytes[text[i]] < 0 {
			return false
		}
	}
	return true
}

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

// newBPE reads the "model" object of a tokenizer.json whose type is BPE.
func newBPE(raw json.RawMessage) (*bpe, error) {
	var d bpeDescription
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("read the BPE model: %w", err)
	}
	if d.Dropout != nil && *d.Dropout != 0 {
		return nil, fmt.Errorf("the BPE model's dropout of %v, which makes ids a matter of chance, is not supported: set it to null", *d.Dropout)
	}
	if d.Prefix != "" || d.Suffix != "" {
		return nil, fmt.Errorf("a BPE model with marks of words (%q, %q) in its tokens is not supported", d.Prefix, d.Suffix)
	}
	if d.Vocab == nil || d.Merges == nil {
		return nil, errors.New("the BPE model lacks its vocab or its merges")
	}
	m := &bpe{unk: -1, fuse: d.FuseUnk, whole: d.IgnoreMerges}
	var err error
	if m.ids, m.size, err = readIDs(d.Vocab); err != nil {
		return nil, fmt.Errorf("the BPE model's vocabulary: %w", err)
	}
	if d.Unk != nil {
		id, ok := m.ids[*d.Unk]
		if !ok {
			return nil, fmt.Errorf("the BPE model's unk_token %q is not in its vocabulary", *d.Unk)
		}
		m.unk = id
	}
	if d.ByteFallback {
		m.bytes = new([256]int32)
		for b := range m.bytes {
			m.bytes[b] = m.idOr(fmt.Sprintf("<0x%02X>", b))
		}
	}
	merges, err := m.readMerges(d.Merges)
	if err != nil {
		return nil, err
	}
	m.joins = make(map[pair]join, len(merges))
	for rank, g := range merges {
		m.joins[g.pair] = join{uint32(rank), g.id} // if a pair has two merges, the last one counts
	}
	return m, nil
}

// idOr returns the id of a token, or -1.
func (m *bpe) idOr(token string) int32 {
	if id, ok := m.ids[token]; ok {
		return id
	}
	return -1
}
