package local

import (
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk/analyze"
)

// inverted is the lexical side of a table: for each word the rows that it
// occurs in. Removed rows stay in the lists, but count in no statistic.
type inverted struct {
	analyzer analyze.Analyzer
	k1, b    float64

	terms   map[string]uint32
	lists   [][]posting // by term; rows rise
	df      []int32     // by term: living rows that have it
	lengths []float32   // by row: words of its text; infinite once it is removed
	total   int64       // words of the living rows
	words   []string    // of the text at hand
}

// posting says how often a word occurs in a row.
type posting struct {
	row   int32
	count uint32
}

func newInverted(analyzer analyze.Analyzer, k1, b float64) *inverted {
	return &inverted{analyzer: analyzer, k1: k1, b: b, terms: map[string]uint32{}}
}

// add takes in the next row. Its field is the context, a newline and the text.
func (v *inverted) add(row int32, context, text string) {
	v.analyze(context, text)
	for _, w := range v.words {
		term, ok := v.terms[w]
		if !ok {
			term = uint32(len(v.lists))
			v.terms[strings.Clone(w)] = term
			v.lists = append(v.lists, nil)
			v.df = append(v.df, 0)
		}
		list := v.lists[term]
		if last := len(list) - 1; last >= 0 && list[last].row == row {
			list[last].count++
			continue
		}
		v.lists[term] = append(list, posting{row, 1})
		v.df[term]++
	}
	v.lengths = append(v.lengths, float32(len(v.words)))
	v.total += int64(len(v.words))
}

// remove takes a row, with the texts that it was added with, out of the
// statistics. Its infinite length keeps it from scoring; where k1 or b is 0 it
// may score NaN, which no comparison lets pass.
func (v *inverted) remove(row int32, context, text string) {
	v.analyze(context, text)
	v.total -= int64(len(v.words))
	v.lengths[row] = float32(math.Inf(1))
	slices.Sort(v.words)
	for _, w := range slices.Compact(v.words) {
		v.df[v.terms[w]]--
	}
}

// analyze fills v.words. A newline separates words under every analyzer, so
// that two texts can be taken one after the other.
func (v *inverted) analyze(context, text string) {
	v.words = v.analyzer.Append(v.analyzer.Append(v.words[:0], context), text)
}

// score adds the BM25 score of every row for a query to sums, which is 0 for
// each row, and reports whether any row can have scored:
//
//	Σ over the query's words  idf · tf / (tf + k1·(1 - b + b·length/average length))
//	idf = ln(1 + (N - df + 0.5) / (df + 0.5))
//
// BM25 is from Robertson and Zaragoza, "The Probabilistic Relevance Framework:
// BM25 and Beyond" (2009); this form of it, with an idf above 0 and without the
// constant factor k1 + 1, is Lucene's, with exact lengths as in "Lucene
// (accurate)" of Kamphuis, de Vries, Boytsov and Lin, "Which BM25 Do You Mean?"
// (ECIR 2020). A word that the query has twice counts twice.
func (v *inverted) score(sums []float32, query string, living int) bool {
	var terms []uint32
	for _, w := range v.analyzer.Append(nil, query) {
		if term, ok := v.terms[w]; ok && v.df[term] > 0 {
			terms = append(terms, term)
		}
	}
	if len(terms) == 0 {
		return false
	}
	base := float32(v.k1 * (1 - v.b))
	slope := float32(v.k1 * v.b * float64(living) / float64(v.total))
	for _, term := range terms {
		df := float64(v.df[term])
		idf := float32(math.Log1p((float64(living) - df + 0.5) / (df + 0.5)))
		for _, p := range v.lists[term] {
			tf := float32(p.count)
			sums[p.row] += idf * tf / (tf + base + slope*v.lengths[p.row])
		}
	}
	return true
}
