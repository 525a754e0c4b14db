package bpe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/tokenizer/jsonlist"
)

// merged is a merge: a pair, and what it becomes.
type merged struct {
	pair
	id int32
}

// readMerges reads the list of merges, the order of which is that of their ranks: pairs of
// tokens, or in older files lines of two.
func (m *Model) readMerges(raw json.RawMessage) ([]merged, error) {
	var merges []merged
	var tokens []string
	i := 0
	err := jsonlist.Each(raw, func(element []byte) (err error) {
		i++
		if bytes.HasPrefix(element, []byte(`"#version`)) {
			return nil
		}
		if tokens, err = appendTokens(tokens[:0], element); err != nil {
			return err
		}
		g, err := m.lookUp(tokens)
		if merges = append(merges, g); len(merges) > maxTokens {
			return fmt.Errorf("a model has at most %d", maxTokens)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the BPE model's merge %d: %w", i, err)
	}
	return merges, nil
}

// appendTokens appends the tokens of an element of the list.
func appendTokens(tokens []string, element []byte) ([]string, error) {
	if element[0] == '"' {
		line, err := jsonlist.String(element)
		return append(tokens, strings.Split(line, " ")...), err
	}
	err := jsonlist.Each(element, func(token []byte) error {
		s, err := jsonlist.String(token)
		tokens = append(tokens, s)
		return err
	})
	return tokens, err
}

// lookUp finds the ids of a merge.
func (m *Model) lookUp(tokens []string) (merged, error) {
	if len(tokens) != 2 {
		return merged{}, fmt.Errorf("it has %d tokens; a merge has two", len(tokens))
	}
	left, right := tokens[0], tokens[1]
	rest, ok := strings.CutPrefix(right, m.prefix)
	if !ok || rest == "" || left == "" {
		return merged{}, fmt.Errorf("it joins %.40q and %.40q; the second of two tokens continues the first%s", left, right, m.withPrefix())
	}
	g := merged{pair{m.idOr(left), m.idOr(right)}, m.idOr(left + rest)}
	if g.left < 0 || g.right < 0 || g.id < 0 {
		return g, fmt.Errorf("it needs %.40q, %.40q and %.40q in the vocabulary", left, right, left+rest)
	}
	return g, nil
}

// withPrefix names the prefix of tokens that continue a word.
func (m *Model) withPrefix() string {
	if m.prefix == "" {
		return ""
	}
	return fmt.Sprintf(" with the prefix %q", m.prefix)
}

// findDividers finds which neighbours can ever be joined, themselves or as the ends of
// longer symbols, so that a word is cut between all others. It finds none, which costs time
// alone, in a model whose merges make one symbol of several kinds of ends, which no training does.
func (m *Model) findDividers(merges []merged) {
	first, last := map[int32]int32{}, map[int32]int32{} // the ends of symbols that merges make
	end := func(ends map[int32]int32, id int32) int32 {
		if e, ok := ends[id]; ok {
			return e
		}
		return id
	}
	starts := m.starts()
	for _, g := range merges {
		if starts[g.id] {
			return // it is made, and found in texts
		}
		if _, ok := first[g.id]; !ok {
			first[g.id], last[g.id] = end(first, g.left), end(last, g.right)
		}
	}
	for _, g := range merges {
		if first[g.id] != end(first, g.left) || last[g.id] != end(last, g.right) {
			return
		}
	}
	for _, g := range merges {
		ends := pair{end(last, g.left), end(first, g.right)}
		if _, ok := m.joins[ends]; !ok {
			m.joins[ends] = never
		}
	}
	m.divide = true
}

// starts returns the symbols that words begin as: those of characters and bytes, and unknown ones.
func (m *Model) starts() map[int32]bool {
	starts := map[int32]bool{m.unk: true}
	for token, id := range m.ids {
		inner := strings.TrimPrefix(token, m.prefix)
		for _, t := range []string{token, inner, strings.TrimSuffix(token, m.suffix), strings.TrimSuffix(inner, m.suffix)} {
			if utf8.RuneCountInString(t) <= 1 {
				starts[id] = true
			}
		}
	}
	if m.bytes != nil {
		for _, id := range m.bytes {
			starts[id] = true
		}
	}
	return starts
}
