package local

import (
	"math"

	"github.com/racflow/racflow/sdk/analyze"
)

// query is an item's text, word by word.
type query struct {
	analyzer analyze.Analyzer
	terms    map[string]int  // its words, numbered in the order in which they come
	pairs    map[[2]int]bool // words that stand next to each other
}

func newQuery(analyzer analyze.Analyzer, text string) *query {
	q := &query{analyzer: analyzer, terms: map[string]int{}, pairs: map[[2]int]bool{}}
	before := -1
	for _, w := range analyzer.Append(nil, text) {
		n, ok := q.terms[w]
		if !ok {
			n = len(q.terms)
			q.terms[w] = n
		}
		if before >= 0 && before != n {
			q.pairs[[2]int{before, n}] = true
		}
		before = n
	}
	return q
}

// matches are the words of a query in a text.
type matches struct {
	counts []int           // by word of the query
	pairs  map[[2]int]bool // that stand next to each other here, too; nil: none
	length int             // words of the text
}

func (q *query) match(words []string) matches {
	m := matches{counts: make([]int, len(q.terms)), length: len(words)}
	before := -1
	for _, w := range words {
		n, ok := q.terms[w]
		if !ok {
			before = -1
			continue
		}
		m.counts[n]++
		if pair := [2]int{before, n}; before >= 0 && q.pairs[pair] {
			if m.pairs == nil {
				m.pairs = map[[2]int]bool{}
			}
			m.pairs[pair] = true
		}
		before = n
	}
	return m
}

// rarity is BM25's idf of the query's words among the candidates, which have a word in
// the text or in the fields. It is 0 for a word that none of them has.
func (q *query) rarity(texts, fields []matches) []float64 {
	idf := make([]float64, len(q.terms))
	for n := range idf {
		with := 0.0
		for i := range texts {
			if texts[i].counts[n]+fields[i].counts[n] > 0 {
				with++
			}
		}
		if with > 0 {
			idf[n] = math.Log(1 + (float64(len(texts))-with+.5)/(with+.5))
		}
	}
	return idf
}
