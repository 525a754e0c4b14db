package wordpiece

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/tokenizer/jsonlist"
)

const (
	maxID     = 1<<24 - 1
	maxTokens = 1 << 21 // far above those of the largest models
)

// New reads the "model" of a tokenizer.json. An error says what is wrong with it, and not
// in which file.
func New(raw json.RawMessage) (*Model, error) {
	f := struct {
		Unknown string          `json:"unk_token"`
		Prefix  string          `json:"continuing_subword_prefix"`
		MaxWord int             `json:"max_input_chars_per_word"`
		Vocab   json.RawMessage `json:"vocab"`
	}{"[UNK]", "##", 100, nil}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	if f.MaxWord < 1 {
		return nil, fmt.Errorf("max_input_chars_per_word is %d", f.MaxWord)
	}
	vocab, err := readIDs(f.Vocab)
	if err != nil {
		return nil, err
	}
	return build(vocab, f.Unknown, f.Prefix, f.MaxWord)
}

// readIDs reads the ids of tokens.
func readIDs(raw json.RawMessage) (map[string]int32, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errors.New("vocab is not an object of tokens and ids")
	}
	ids := map[string]int32{}
	return ids, jsonlist.Each(raw, func(member []byte) error {
		token, value, err := jsonlist.Member(member)
		if err != nil {
			return err
		}
		id, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || id < 0 || id > maxID {
			return fmt.Errorf("token %.40q has the impossible id %.40s", token, value)
		}
		if ids[token] = int32(id); len(ids) > maxTokens {
			return fmt.Errorf("it has more than %d tokens", maxTokens)
		}
		return nil
	})
}

// ReadVocab reads a vocab.txt of one token a line, whose id is the number of the line.
func ReadVocab(vocab io.Reader) (*Model, error) {
	ids := map[string]int32{}
	lines := bufio.NewScanner(vocab)
	n := 0
	for ; lines.Scan(); n++ {
		ids[lines.Text()] = int32(n)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d is no token: %w", n+1, err)
	} else if err != nil {
		return nil, err
	}
	m, err := build(ids, "[UNK]", "##", 100)
	if err == nil {
		m.size = n
	}
	return m, err
}

func build(vocab map[string]int32, unknown, prefix string, maxWord int) (*Model, error) {
	m := &Model{first: vocab, rest: make(map[string]int32, len(vocab)/4), maxWord: maxWord}
	taken := make(map[int32]string, len(vocab))
	for token, id := range vocab {
		switch other, twice := taken[id]; {
		case twice:
			return nil, fmt.Errorf("tokens %.40q and %.40q have the same id %d", min(token, other), max(token, other), id)
		case len(token) > maxPiece && utf8.RuneCountInString(token) <= maxWord:
			return nil, fmt.Errorf("token %.40q... has %d bytes: %d are possible", token, len(token), maxPiece)
		}
		taken[id] = token
		m.size = max(m.size, int(id)+1)
		m.longest[0] = min(max(m.longest[0], len(token)), maxPiece)
		if piece, ok := strings.CutPrefix(token, prefix); ok && piece != "" {
			m.rest[piece] = id
			m.longest[1] = min(max(m.longest[1], len(piece)), maxPiece)
		}
	}
	var ok bool
	if m.unk, ok = m.first[unknown]; !ok {
		return nil, fmt.Errorf("the vocabulary of %d tokens lacks the unknown token %q", len(vocab), unknown)
	}
	return m, nil
}
