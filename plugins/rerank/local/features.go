package local

import (
	"math"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

// features of a candidate are from 0 to 1 among the candidates of one item.
type features struct {
	dense   float64 // cosine, from the lowest to the highest
	lexical float64 // BM25, divided by the highest
	words   float64 // share of the query's words in the text, the rare ones counting more
	pairs   float64 // the same of its pairs of neighbouring words
	fields  float64 // share of the query's words in the context, the terms and the fields of the metadata
}

// featuresOf returns the features of an item's candidates, the words of each as numbers,
// and the number of distinct words.
func featuresOf(a analyze.Analyzer, item *sdk.Item, names []string) ([]features, [][]int, int) {
	q := newQuery(a, item.Text)
	all := make([]features, len(item.Candidates))
	bodies, heads := make([]matches, len(all)), make([]matches, len(all))
	sets, seen := make([][]int, len(all)), vocabulary{numbers: map[string]int{}}
	var words []string
	for i := range item.Candidates {
		c := &item.Candidates[i]
		words = a.Append(words[:0], c.Text)
		bodies[i], sets[i] = q.match(words), seen.set(words)
		context, terms := sdk.SplitContext(c.Context)
		words = a.Append(words[:0], context)
		for _, term := range terms {
			words = a.Append(words, term)
		}
		for _, name := range names {
			if text, ok := c.Meta[name].(string); ok {
				words = a.Append(words, text)
			}
		}
		heads[i] = q.match(words)
	}
	searchScores(item.Candidates, all)
	idf := q.rarity(bodies, heads)
	mean := 0.0
	for i := range bodies {
		mean += float64(bodies[i].length) / float64(len(bodies))
	}
	for i := range all {
		all[i].words, all[i].pairs = share(q, idf, bodies[i], mean)
		for n, count := range heads[i].counts {
			if count > 0 {
				all[i].fields += idf[n]
			}
		}
		all[i].fields = ratio(all[i].fields, sum(idf))
	}
	return all, sets, len(seen.last)
}

// share is the part of the query's words, and of its pairs of words, that a text has,
// weighted by rarity. Frequent words count more, less so in a long text: BM25's
// saturation, with k1 = 1.2 and b = 0.75.
func share(q *query, idf []float64, m matches, mean float64) (words, pairs float64) {
	all := 0.0
	for n, count := range m.counts {
		all += idf[n]
		if count > 0 {
			f := float64(count)
			words += idf[n] * f / (f + 1.2*(.25+.75*ratio(float64(m.length), mean)))
		}
	}
	words, all = ratio(words, all), 0
	for p := range q.pairs {
		weight := idf[p[0]] + idf[p[1]]
		all += weight
		if m.pairs[p] {
			pairs += weight
		}
	}
	return words, ratio(pairs, all)
}

// searchScores fills in the features of the two search legs.
func searchScores(candidates []sdk.Candidate, all []features) {
	low, high, best := math.Inf(1), math.Inf(-1), 0.0
	for i := range candidates {
		if d := float64(candidates[i].Dense); finite(d) {
			low, high = min(low, d), max(high, d)
		}
		if l := float64(candidates[i].Lexical); finite(l) {
			best = max(best, l)
		}
	}
	for i := range candidates {
		if d := float64(candidates[i].Dense); finite(d) {
			all[i].dense = ratio(d-low, high-low)
		}
		if l := float64(candidates[i].Lexical); finite(l) && l > 0 {
			all[i].lexical = l / best
		}
	}
}

// finite reports whether a search leg computed a score.
func finite(score float64) bool { return !math.IsNaN(score) && !math.IsInf(score, 0) }

func sum(all []float64) (s float64) {
	for _, x := range all {
		s += x
	}
	return s
}

// ratio is a / b; 0 where b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
