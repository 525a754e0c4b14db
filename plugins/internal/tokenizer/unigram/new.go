package unigram

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/racflow/racflow/plugins/internal/tokenizer/jsonlist"
)

// What is read of a model, far above what the largest have: the time for a text grows with the
// longest token, and memory with the bytes of all.
const (
	longest   = 512
	maxTokens = 1 << 21
	maxBytes  = 1 << 24
)

// description is the "model" object of tokenizer.json.
type description struct {
	Unk          *int            `json:"unk_id"`
	Vocab        json.RawMessage `json:"vocab"`
	ByteFallback bool            `json:"byte_fallback"`
}

// New reads the "model" object of a tokenizer.json whose type is Unigram.
func New(raw json.RawMessage) (*Model, error) {
	var d description
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("read the Unigram model: %w", err)
	}
	if d.Vocab == nil {
		return nil, errors.New("the Unigram model has no vocabulary")
	}
	m := &Model{}
	if err := m.readVocab(d.Vocab); err != nil {
		return nil, fmt.Errorf("token %d of the Unigram model: %w", len(m.scores), err)
	}
	switch {
	case d.Unk == nil:
		return nil, errors.New("the Unigram model names no unk_id, the token for what its vocabulary lacks")
	case *d.Unk < 0 || *d.Unk >= len(m.scores):
		return nil, fmt.Errorf("the Unigram model's unk_id %d is none of its %d tokens", *d.Unk, len(m.scores))
	}
	m.unk = int32(*d.Unk)
	m.unkScore = slices.Min(m.scores) - unkPenalty
	if d.ByteFallback {
		m.bytes = new([256]int32)
		for b := range m.bytes {
			m.bytes[b] = m.trie.find(fmt.Sprintf("<0x%02X>", b))
		}
	}
	return m, nil
}

// readVocab reads the tokens with their scores, which are logarithms of probabilities.
func (m *Model) readVocab(raw json.RawMessage) error {
	var tokens []string
	bytes := 0
	err := jsonlist.Each(raw, func(piece []byte) error {
		token, value, err := pieceOf(piece)
		switch {
		case err != nil:
			return err
		case len(token) > longest:
			return fmt.Errorf("it has %d bytes; at most %d are read", len(token), longest)
		case len(tokens) == maxTokens:
			return fmt.Errorf("a model has at most %d", maxTokens)
		}
		if bytes += len(token); bytes > maxBytes {
			return fmt.Errorf("a model's tokens have at most %d bytes together", maxBytes)
		}
		tokens, m.scores = append(tokens, token), append(m.scores, value)
		return nil
	})
	if err == nil {
		m.trie = newTrie(tokens)
	}
	return err
}

// pieceOf reads an array of a token and its score.
func pieceOf(piece []byte) (token string, value float64, err error) {
	fields := 0
	err = jsonlist.Each(piece, func(field []byte) (err error) {
		switch fields++; fields {
		case 1:
			token, err = jsonlist.String(field)
		case 2:
			value, err = score(string(field))
		}
		return err
	})
	if err == nil && fields != 2 {
		err = fmt.Errorf("%.40s has %d elements, not a token and its score", piece, fields)
	}
	return token, value, err
}
