package local

import (
	"math"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

// features of a candidate are from 0 to 1 among the candidates of one item.
type features struct {
	score   float64 // that of the search, from the lowest to the highest
	phrases float64 // share of the query's pairs of neighbouring words in the text, the rare ones counting more
	fields  float64 // the same of its words in the context, the terms and the fields of the metadata
}

// list is what the order of an item's candidates depends on.
type list struct {
	features []features
	sets     [][]int // the words of each text, as numbers
	words    int     // distinct words of all texts
}

// read reads an item's candidates. The metadata's keys in names are fields.
func read(a analyze.Analyzer, item *sdk.Item, names []string) list {
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
	readScores(item.Candidates, all)
	terms, phrases := q.rarity(bodies, heads)
	for i := range all {
		all[i].phrases, all[i].fields = share(phrases, bodies[i].phrases), share(terms, heads[i].words)
	}
	return list{all, sets, len(seen.last)}
}

// readScores fills in the feature of the search. A score that is not finite counts as the
// lowest.
func readScores(candidates []sdk.Candidate, all []features) {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range candidates {
		if s := float64(candidates[i].Score); finite(s) {
			low, high = min(low, s), max(high, s)
		}
	}
	for i := range candidates {
		if s := float64(candidates[i].Score); finite(s) {
			all[i].score = ratio(s-low, high-low)
		}
	}
}

func finite(score float64) bool { return !math.IsNaN(score) && !math.IsInf(score, 0) }

// ratio is a / b; 0 where b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
