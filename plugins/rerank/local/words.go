package local

import (
	"math"

	"github.com/racflow/racflow/sdk/analyze"
)

// query is an item's text, word by word.
type query struct {
	words   map[string]int // numbered in the order in which they come
	phrases map[[2]int]int // words that stand next to each other, numbered, too
	pairs   [][2]int       // those of the phrases, by number
}

func newQuery(analyzer analyze.Analyzer, text string) *query {
	q := &query{words: map[string]int{}, phrases: map[[2]int]int{}}
	before := -1
	for _, w := range analyzer.Append(nil, text) {
		n, ok := q.words[w]
		if !ok {
			n = len(q.words)
			q.words[w] = n
		}
		pair := [2]int{before, n}
		if _, ok := q.phrases[pair]; !ok && before >= 0 && before != n {
			q.phrases[pair] = len(q.pairs)
			q.pairs = append(q.pairs, pair)
		}
		before = n
	}
	return q
}

// matches are the words and phrases of a query that a text has, by number.
type matches struct{ words, phrases []bool }

func (q *query) match(words []string) matches {
	m := matches{make([]bool, len(q.words)), make([]bool, len(q.pairs))}
	before := -1
	for _, w := range words {
		n, ok := q.words[w]
		if !ok {
			before = -1
			continue
		}
		m.words[n] = true
		if phrase, ok := q.phrases[[2]int{before, n}]; ok {
			m.phrases[phrase] = true
		}
		before = n
	}
	return m
}

// rarity is BM25's idf of the query's words among the candidates, which have a word in
// the text or in the fields, and that of its phrases: the sum of their two words. It is
// 0 for a word that none of them has.
func (q *query) rarity(texts, fields []matches) (words, phrases []float64) {
	words, phrases = make([]float64, len(q.words)), make([]float64, len(q.pairs))
	for n := range words {
		with := 0.0
		for i := range texts {
			if texts[i].words[n] || fields[i].words[n] {
				with++
			}
		}
		if with > 0 {
			words[n] = math.Log(1 + (float64(len(texts))-with+.5)/(with+.5))
		}
	}
	for i, p := range q.pairs {
		phrases[i] = words[p[0]] + words[p[1]]
	}
	return words, phrases
}

// share is the part of all weights that those have which match.
func share(weights []float64, matched []bool) float64 {
	has, all := 0.0, 0.0
	for i, w := range weights {
		all += w
		if matched[i] {
			has += w
		}
	}
	return ratio(has, all)
}
