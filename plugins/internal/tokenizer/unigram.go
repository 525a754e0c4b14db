package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file is SentencePiece's unigram language model (Kudo 2018, arXiv:1804.10959) in the form of tokenizer.json:
// the model of XLM-RoBERTa and of multilingual E5.
//
// It converts one word into ids by the best sum of scores (Viterbi 1967). The ids are those of the tokenizers library
// with the same file, as the test data record. Transformers 5 reads the scores itself for some models, and their last
// bits differ from the library's. So it may cut runs of one character in another order. Normalisers and
// pre-tokenizers come before. The model does not train, sample, or convert ids into text.

// unigram converts words into ids. It is read-only and safe for concurrent use.
type unigram struct {
	trie     *trie
	scores   []float64 // by id
	unk      int32
	unkScore float64
	bytes    *[256]int32 // ids of <0x00> to <0xFF>, -1 for missing ones; nil without byte_fallback
}

// unkPenalty is the lowest score minus the score of an unknown character.
const unkPenalty = 10

// Size is the highest id plus one.
func (m *unigram) Size() int { return len(m.scores) }

// ID returns the id of a token.
func (m *unigram) ID(token string) (int32, bool) {
	id := m.trie.find(token)
	return id, id >= 0
}

// node is the best way to cut a word up to a byte.
type node struct {
	score float64
	token int32
	from  int32 // where its last token begins; -1: no way reaches this byte yet
}

// Append appends the ids of one word. The time is proportional to the length of the word times the length of the
// longest tokens in it.
func (m *unigram) Append(ids []int32, word string) []int32 {
	nodes := append(make([]node, 0, 64), node{}) // by the byte where they end
	for at := 0; at < len(word); {
		_, n := utf8.DecodeRuneInString(word[at:])
		nodes = m.extend(nodes, word, at, n)
		at += n
	}
	return m.settle(ids, nodes, word)
}

// extend adds the tokens of s that begin at a byte; the character there has n bytes.
func (m *unigram) extend(nodes []node, s string, at, n int) []node {
	score, single := nodes[at].score, false
	place := uint32(0)
	for i := at; i < len(s); i++ {
		if place = m.trie.child(place, s[i]); place == 0 {
			break
		}
		if id := m.trie.ids[place]; id >= 0 {
			nodes = offer(nodes, i+1, node{score + m.scores[id], id, int32(at)})
			single = single || i+1 == at+n
		}
	}
	if !single {
		nodes = offer(nodes, at+n, node{score + m.unkScore, m.unk, int32(at)})
	}
	return nodes
}

// offer adds a way to a byte if it is better than the best one so far.
func offer(nodes []node, to int, way node) []node {
	for len(nodes) <= to {
		nodes = append(nodes, node{from: -1})
	}
	if best := &nodes[to]; best.from < 0 || way.score > best.score {
		*best = way
	}
	return nodes
}

// settle appends the tokens of the best way to the end of a word. Adjacent unknown characters become one token.
func (m *unigram) settle(ids []int32, nodes []node, word string) []int32 {
	way := make([]node, 0, 32)
	for at := int32(len(word)); at > 0; at = nodes[at].from {
		way = append(way, nodes[at])
	}
	unknown := -1 // where a run of unknown characters begins
	for _, n := range slices.Backward(way) {
		if n.token != m.unk {
			ids = append(m.endRun(ids, word, unknown, int(n.from)), n.token)
			unknown = -1
		} else if unknown < 0 {
			unknown = int(n.from)
		}
	}
	return m.endRun(ids, word, unknown, len(word))
}

// endRun appends the tokens for a run of unknown characters between two bytes: the run itself if it is a token, its
// bytes, or the unknown token. If start is -1 there is no run.
func (m *unigram) endRun(ids []int32, word string, start, end int) []int32 {
	if start < 0 {
		return ids
	}
	run := word[start:end]
	if id := m.trie.find(run); id >= 0 {
		return append(ids, id)
	}
	before := len(ids)
	for i := range len(run) {
		if m.bytes == nil || m.bytes[run[i]] < 0 {
			return append(ids[:before], m.unk)
		}
		ids = append(ids, m.bytes[run[i]])
	}
	return ids
}

// Bounds of a model, far above what the largest models have: the time for a text grows with the longest token, and
// memory with the bytes of all tokens.
const (
	longest  = 512
	maxBytes = 1 << 24
)

// unigramDescription is the "model" object of tokenizer.json.
type unigramDescription struct {
	Unk          *int            `json:"unk_id"`
	Vocab        json.RawMessage `json:"vocab"`
	ByteFallback bool            `json:"byte_fallback"`
}

// newUnigram reads the "model" object of a tokenizer.json whose type is Unigram.
func newUnigram(raw json.RawMessage) (*unigram, error) {
	var d unigramDescription
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("read the Unigram model: %w", err)
	}
	if d.Vocab == nil {
		return nil, errors.New("the Unigram model has no vocabulary")
	}
	m := &unigram{}
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
func (m *unigram) readVocab(raw json.RawMessage) error {
	var tokens []string
	bytes := 0
	err := eachElement(raw, func(piece []byte) error {
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

// pieceOf reads an array with a token and its score.
func pieceOf(piece []byte) (token string, value float64, err error) {
	fields := 0
	err = eachElement(piece, func(field []byte) (err error) {
		switch fields++; fields {
		case 1:
			token, err = stringOf(field)
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

// score reads a number like the tokenizers library's JSON reader: its digits as a 64-bit integer, multiplied or
// divided by a power of ten. The result may differ in the last bit from the nearest float64. The last bit decides
// between two ways to cut a word into the same tokens in another order. text is a checked JSON value.
func score(text string) (float64, error) {
	nearest, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("the score %.40q is not a finite number", text)
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, _ := strconv.Atoi(power)
	if len(whole) > 19 { // more than 64 bits can hold
		return nearest, nil
	}
	digits, err := strconv.ParseUint(whole, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the score %.40q: %w", text, err)
	}
	for i := range len(fraction) {
		digit := uint64(fraction[i] - '0')
		if digits > (math.MaxUint64-digit)/10 {
			break // further digits do not count
		}
		digits = digits*10 + digit
		exponent--
	}
	steps := max(exponent, -exponent)
	if steps > 308 { // float64 has no such power of ten
		return nearest, nil
	}
	scale, err := strconv.ParseFloat("1e"+strconv.Itoa(steps), 64)
	if err != nil {
		return 0, fmt.Errorf("the score %.40q: %w", text, err)
	}
	value := float64(digits)
	if exponent < 0 {
		value /= scale
	} else {
		value *= scale
	}
	if negative {
		value = -value
	}
	return value, nil
}

// trie stores strings with an id each, as nodes by level: the children of a node are adjacent, in the order of their
// labels. A node takes nine bytes.
type trie struct {
	labels   []byte   // of the edge to each node
	children []uint32 // of node i: from children[i] to children[i+1]
	ids      []int32  // -1 if no string ends here
}

// newTrie creates a trie of tokens. Their ids are their positions; for equal tokens, the last position.
func newTrie(tokens []string) *trie {
	order := make([]int32, len(tokens))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return strings.Compare(tokens[a], tokens[b]) })
	t := &trie{labels: []byte{0}}
	type span struct{ from, to, depth int32 } // the strings below a node, which have the first depth bytes in common
	level := []span{{0, int32(len(order)), 0}}
	for len(level) > 0 {
		var next []span
		for _, s := range level {
			id := int32(-1)
			for s.from < s.to && len(tokens[order[s.from]]) == int(s.depth) {
				id = order[s.from]
				s.from++
			}
			t.ids = append(t.ids, id)
			t.children = append(t.children, uint32(len(t.labels)))
			for s.from < s.to {
				label := tokens[order[s.from]][s.depth]
				end := s.from + 1
				for end < s.to && tokens[order[end]][s.depth] == label {
					end++
				}
				t.labels = append(t.labels, label)
				next = append(next, span{s.from, end, s.depth + 1})
				s.from = end
			}
		}
		level = next
	}
	t.children = append(t.children, uint32(len(t.labels)))
	return t
}

// child returns the child of a node for a byte, or 0 if there is none.
func (t *trie) child(node uint32, b byte) uint32 {
	first := t.children[node]
	labels := t.labels[first:t.children[node+1]]
	if i := bytes.IndexByte(labels, b); i >= 0 {
		return first + uint32(i)
	}
	return 0
}

// find returns the id of a string, or -1.
func (t *trie) find(s string) int32 {
	node := uint32(0)
	for i := range len(s) {
		if node = t.child(node, s[i]); node == 0 {
			return -1
		}
	}
	return t.ids[node]
}
