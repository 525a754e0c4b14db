package stores

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
	"github.com/racflow/racflow/sdk/fuse"
)

var (
	weighted = sdk.Fusion{Method: fuse.Weighted, DenseWeight: 0.7}
	rrf      = sdk.Fusion{Method: fuse.RRF, K: 60}
)

// ranking is a search for the topK best out of n candidates of each leg.
func ranking(mode sdk.Mode, f sdk.Fusion, n, topK int) sdk.Ranking {
	return sdk.Ranking{Search: sdk.Search{Mode: mode, NumCandidates: n, Texts: true}, Fusion: f, TopK: topK}
}

func (c *collection) retrieve(r sdk.Ranking, queries ...sdk.Query) [][]sdk.Candidate {
	c.Helper()
	lists, err := c.process.Stage.Retrieve(c.Context(), c.name, r, without(r.Mode, queries))
	if err != nil {
		c.Fatalf("%s search: %v", r.Mode, err)
	}
	return lists
}

// without returns queries as a mode has them: a lexical one without vectors.
func without(mode sdk.Mode, queries []sdk.Query) []sdk.Query {
	if mode != sdk.ModeLexical {
		return queries
	}
	all := slices.Clone(queries)
	for i := range all {
		all[i].Vector = nil
	}
	return all
}

// compare searches and compares the candidates with what they ought to be. In
// a hybrid search a store is free to give hits the score of the leg that did not
// find them, and has to be consistent in it.
func (c *collection) compare(r sdk.Ranking, queries ...sdk.Query) {
	c.Helper()
	lists := c.retrieve(r, queries...)
	if len(lists) != len(queries) {
		c.Fatalf("%s search: %d lists for %d queries", r.Mode, len(lists), len(queries))
	}
	legs := make([]found, len(queries))
	for i, q := range queries {
		legs[i] = c.find(r.Mode, q)
	}
	ways := []crossed{{true, true}}
	if r.Mode == sdk.ModeHybrid {
		ways = append(ways, crossed{false, false}, crossed{true, false}, crossed{false, true})
	}
	var first error
	for _, x := range ways {
		var err error
		for i := 0; i < len(queries) && err == nil; i++ {
			if err = c.sameRanking(r, lists[i], legs[i].rank(r, x)); err != nil {
				err = fmt.Errorf("query %d, filter %.300s: %w", i, queries[i].Filter, err)
			}
		}
		if err == nil {
			return
		}
		if first == nil {
			first = err
		}
	}
	c.Errorf("%s search, fusion %q, %d candidates, top_k %d: %v", r.Mode, r.Method, r.NumCandidates, r.TopK, first)
}

// find is what the legs of a search ought to find.
func (c *collection) find(mode sdk.Mode, q sdk.Query) (f found) {
	if mode != sdk.ModeLexical {
		f.dense = append([]scored{}, c.now.dense(q)...)
	}
	if mode != sdk.ModeDense {
		f.lexical = append([]scored{}, c.counted().lexical(q)...)
	}
	return f
}

// counted are the statistics of what is committed.
func (c *collection) counted() *statistics {
	if c.statistics == nil {
		words, err := analyze.Named(cmp.Or(c.schema.Analyzer, "standard"))
		if err != nil {
			c.Fatalf("%v", err)
		}
		c.statistics = c.now.statistics(words)
	}
	return c.statistics
}

// sameRanking compares candidates with the whole ranking that they are the head
// of. Those whose scores differ by rounding only may change places.
func (c *collection) sameRanking(r sdk.Ranking, got, want []sdk.Candidate) error {
	if n := min(r.TopK, len(want)); len(got) != n {
		return fmt.Errorf("%d candidates, want %d", len(got), n)
	}
	known := map[string]sdk.Candidate{}
	for _, w := range want {
		known[w.ID] = w
	}
	for i, g := range got {
		w, ok := known[g.ID]
		if !ok {
			return fmt.Errorf("place %d: %.60q should not be found, or is there twice", i, g.ID)
		}
		delete(known, g.ID)
		if err := errors.Join(
			c.near("score", r, float64(g.Score), float64(w.Score)),
			c.near("dense score", r, float64(g.Dense), float64(w.Dense)),
			c.near("lexical score", r, float64(g.Lexical), float64(w.Lexical)),
			sameContent(g, c.now[g.ID], r.Texts),
		); err != nil {
			return fmt.Errorf("place %d, %.60q: %w", i, g.ID, err)
		}
		if c.near("", r, float64(w.Score), float64(want[i].Score)) != nil {
			return fmt.Errorf("place %d has %.60q with %v, want %.60q with %v", i, g.ID, w.Score, want[i].ID, want[i].Score)
		}
		if i > 0 && (got[i-1].Score < g.Score || r.Mode != sdk.ModeHybrid && tied(got[i-1], g) && got[i-1].ID > g.ID) {
			return fmt.Errorf("places %d and %d, %.60q and %.60q, stand the wrong way round", i-1, i, got[i-1].ID, g.ID)
		}
	}
	return nil
}

// tied compares the scores that one leg gave; the other's are not numbers.
func tied(a, b sdk.Candidate) bool {
	return a.Score == b.Score && (a.Dense == b.Dense || a.Lexical == b.Lexical)
}

// near compares scores. That of the other leg may be unknown.
func (c *collection) near(what string, r sdk.Ranking, got, want float64) error {
	bound := c.options.Tolerance * max(1, math.Abs(want))
	if what != "dense score" && what != "lexical score" && r.Method == fuse.RRF {
		bound = 1e-6 // ranks are whole numbers
	}
	switch {
	case math.IsNaN(want) || math.IsNaN(got) && r.Mode == sdk.ModeHybrid && what != "score":
		return nil
	case !(math.Abs(got-want) <= bound):
		return fmt.Errorf("%s %v, want %v", what, got, want)
	}
	return nil
}
