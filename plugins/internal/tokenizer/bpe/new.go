package bpe

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/racflow/racflow/plugins/internal/tokenizer/jsonlist"
)

const (
	maxID     = 1<<24 - 1 // bounds what is sized by ids
	maxTokens = 1 << 21   // and merges, far above those of the largest models
)

// description is the "model" object of tokenizer.json.
type description struct {
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

// New reads the "model" object of a tokenizer.json whose type is BPE.
func New(raw json.RawMessage) (*Model, error) {
	var d description
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("read the BPE model: %w", err)
	}
	if d.Dropout != nil && *d.Dropout != 0 {
		return nil, fmt.Errorf("the BPE model's dropout of %v, which makes ids a matter of chance, is not supported: set it to null", *d.Dropout)
	}
	if d.Vocab == nil || d.Merges == nil {
		return nil, errors.New("the BPE model lacks its vocab or its merges")
	}
	m := &Model{unk: -1, fuse: d.FuseUnk, whole: d.IgnoreMerges, prefix: d.Prefix, suffix: d.Suffix}
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
	m.findDividers(merges)
	return m, nil
}

// readVocab reads the ids of tokens.
func (m *Model) readVocab(raw json.RawMessage) error {
	m.ids = map[string]int32{}
	err := jsonlist.Each(raw, func(member []byte) error {
		token, value, err := jsonlist.Member(member)
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
func (m *Model) named(id int32) (tokens []string) {
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
func (m *Model) index(byteFallback bool) {
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
func (m *Model) idOr(token string) int32 {
	if id, ok := m.ids[token]; ok {
		return id
	}
	return -1
}
