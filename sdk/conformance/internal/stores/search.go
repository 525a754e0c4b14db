package stores

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
	"github.com/racflow/racflow/sdk/support"
)

var (
	weighted = sdk.Fusion{Method: support.Weighted, DenseWeight: 0.7}
	rrf      = sdk.Fusion{Method: support.RRF, K: 60}
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
		words, err := support.NamedAnalyzer(cmp.Or(c.schema.Analyzer, "standard"))
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
	if what != "dense score" && what != "lexical score" && r.Method == support.RRF {
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

var searchCases = []storeCase{
	{"dense", func(c *collection) { c.random(ranking(sdk.ModeDense, weighted, 30, 20)) }},
	{"lexical", func(c *collection) { c.random(ranking(sdk.ModeLexical, weighted, 30, 20)) }},
	{"hybrid weighted", func(c *collection) { c.random(ranking(sdk.ModeHybrid, weighted, 30, 40)) }},
	{"hybrid rrf", func(c *collection) { c.random(ranking(sdk.ModeHybrid, rrf, 30, 40)) }},
	{"ties by id", (*collection).ties},
	{"depth and top_k", (*collection).depths},
	{"nothing to find", (*collection).nothingToFind},
	{"texts only where asked", (*collection).textsAsked},
	{"one by one and together", (*collection).oneByOne},
	{"every analyzer", (*collection).analyzers},
	{"without a lexical leg", (*collection).withoutLexical},
}

// random compares searches among a few hundred entries, before and after many
// of them were replaced and deleted: the statistics of the lexical leg are those
// of the living.
func (c *collection) random(r sdk.Ranking) {
	if r.Mode != sdk.ModeDense {
		c.needsLexical()
	}
	random := c.fill()
	c.Run("as put", func(t harness.T) {
		c := c.in(t)
		c.compare(r, c.queries(random, 20, r.NumCandidates)...)
	})
	c.Run("after changes", func(t harness.T) {
		c := c.in(t)
		var gone []string
		for i := range 300 {
			switch i % 5 {
			case 1:
				c.put(randomEntry(random, i))
			case 2:
				gone = append(gone, fmt.Sprint("e", i))
			}
		}
		c.delete(gone...)
		c.commit("changed")
		c.put(randomEntry(random, 300), randomEntry(random, 2), randomEntry(random, 3))
		c.delete("e4")
		c.commit("changed again")
		c.compare(r, c.queries(random, 20, r.NumCandidates)...)
	})
}

// fill puts 300 random entries. It returns the generator, for more.
func (c *collection) fill() *rand.Rand {
	c.Helper()
	random := rand.New(rand.NewPCG(5, 2))
	for i := range 3 {
		var batch []sdk.Entry
		for j := range 100 {
			batch = append(batch, randomEntry(random, 100*i+j))
		}
		c.put(batch...)
	}
	c.commit("corpus")
	return random
}

func randomEntry(r *rand.Rand, i int) sdk.Entry {
	e := sdk.Entry{
		ID: fmt.Sprint("e", i), Text: randomText(r, r.IntN(30)), Label: fmt.Sprint("label ", r.IntN(7)),
		Meta: sdk.Meta{"i": float64(i)}, Hash: []byte{byte(i)}, Vector: randomVector(r),
	}
	if r.IntN(3) == 0 {
		e.Context = randomText(r, 5)
	}
	if r.IntN(30) == 0 {
		clear(e.Vector)
	}
	return e
}

// randomText draws words of which few are frequent and many are rare.
func randomText(r *rand.Rand, words int) string {
	all := make([]string, words)
	for i := range all {
		all[i] = fmt.Sprintf("Word%d", int(r.ExpFloat64()*25))
	}
	return strings.Join(all, " ")
}

// randomVector has any direction, and a length from 0.1 to 10.
func randomVector(r *rand.Rand) []float32 {
	x := make([]float32, dimension)
	length := math.Pow(10, 2*r.Float64()-1)
	for i := range x {
		x[i] = float32(length * r.NormFloat64())
	}
	return x
}

// queries draws n queries whose first depth places are clear: no two scores of
// a leg are so close that rounding could exchange them, unless they are equal.
func (c *collection) queries(r *rand.Rand, n, depth int) []sdk.Query {
	c.Helper()
	var all []sdk.Query
	for range 500 * n {
		q := sdk.Query{Text: randomText(r, 1+r.IntN(6)), Vector: randomVector(r)}
		if c.clear(c.now.dense(q), depth) && c.clear(c.counted().lexical(q), depth) {
			if all = append(all, q); len(all) == n {
				return all
			}
		}
	}
	c.Skipf("with a tolerance of %v the order of too many entries is not clear", c.options.Tolerance)
	return nil
}

func (c *collection) clear(leg []scored, depth int) bool {
	for i := 1; i < len(leg) && i <= depth; i++ {
		if gap := leg[i-1].score - leg[i].score; gap > 0 && gap < 4*c.options.Tolerance*max(1, leg[i].score) {
			return false
		}
	}
	return true
}

// ties checks that equal scores stand in the order of the ids, also where only
// some of them are wanted.
func (c *collection) ties() {
	var batch []sdk.Entry
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(40) {
		batch = append(batch, sdk.Entry{ID: fmt.Sprintf("t%d", i), Text: "the same text", Vector: axis(i % 2)})
	}
	batch = append(batch, sdk.Entry{ID: "T", Text: "the same text", Vector: axis(1)}, sdk.Entry{ID: "é", Text: "the same text", Vector: axis(1)})
	c.put(batch[:20]...)
	c.put(batch[20:]...)
	c.commit("")
	q := sdk.Query{Text: "same", Vector: axis(1)}
	for _, mode := range c.modes() {
		for _, depth := range []int{1, 5, 21, 100} {
			r := ranking(mode, weighted, depth, depth)
			got := c.retrieve(r, q)[0]
			found := c.find(mode, q)
			want, other := found.rank(r, crossed{true, true}), found.rank(r, crossed{})
			want, other = want[:min(depth, len(want))], other[:min(depth, len(other))]
			if ids := idsOf(got); !slices.Equal(ids, idsOf(want)) && !slices.Equal(ids, idsOf(other)) {
				c.Errorf("%s, the %d best: %v, want %v", mode, depth, ids, idsOf(want))
			}
		}
	}
}

// axis is the unit vector along an axis.
func axis(i int) []float32 {
	x := make([]float32, dimension)
	x[i] = 1
	return x
}

func idsOf(list []sdk.Candidate) []string {
	ids := make([]string, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	return ids
}

func (c *collection) depths() {
	random := c.fill()
	queries := c.queries(random, 3, 60)
	for _, mode := range c.modes() {
		for _, d := range []struct{ depth, topK int }{
			{0, 10}, {10, 0}, {0, 0}, {1, 1}, {1, 10}, {10, 1}, {60, 7}, {7, 60}, {1000, 1000}, {5000, 3},
		} {
			for _, f := range []sdk.Fusion{weighted, rrf} {
				if d.depth > 60 && f == rrf {
					continue // so far down ranks are not clear
				}
				c.compare(ranking(mode, f, d.depth, d.topK), queries...)
			}
		}
	}
}

func (c *collection) nothingToFind() {
	empty, full := c.fresh(c.schema), c
	vector := randomVector(full.fill())
	for _, q := range []sdk.Query{
		{Text: "word1", Vector: vector}, {Text: "unheard of", Vector: vector}, {Text: "", Vector: vector},
		{Text: " ?!\n\x00 ", Vector: vector}, {Text: "unheard", Vector: make([]float32, dimension)},
		{Text: "word1", Vector: make([]float32, dimension)},
	} {
		for _, mode := range c.modes() {
			r := ranking(mode, weighted, 10, 10)
			empty.compare(r, q)
			full.compare(r, q)
			if lists := full.retrieve(r); len(lists) != 0 {
				c.Errorf("%s search: %d lists for no query", mode, len(lists))
			}
		}
	}
	full.delete(full.ids()...)
	full.commit("emptied")
	for _, mode := range c.modes() {
		full.compare(ranking(mode, weighted, 10, 10), sdk.Query{Text: "word1", Vector: vector})
	}
}

func (c *collection) textsAsked() {
	random := c.fill()
	for _, mode := range c.modes() {
		r := ranking(mode, weighted, 10, 10)
		r.Texts = false
		c.compare(r, c.queries(random, 2, 10)...)
	}
}

func (c *collection) oneByOne() {
	random := c.fill()
	queries := c.queries(random, 70, 10)
	for _, mode := range c.modes() {
		r := ranking(mode, weighted, 10, 10)
		c.compare(r, queries...)
		for _, q := range queries[:10] {
			c.compare(r, q)
		}
	}
}

// analyzers checks that texts and queries go through the analyzer that the
// collection was made with, in another process, too.
func (c *collection) analyzers() {
	c.needsLexical()
	for _, name := range support.AnalyzerNames() {
		c.Run(name, func(t harness.T) {
			c := c.newCollection(t, sdk.Schema{Dimension: dimension, Analyzer: name})
			for i, text := range []string{
				"func getHTTPServer(max_conns int)", "the http server has 9 conns", "クレジットカードをなくした", "カードの残高", "我的银行卡丢了怎么办", "카드를 분실했다", "บัตรเครดิตหาย", "Straße ﬁne",
			} {
				c.put(sdk.Entry{ID: fmt.Sprint(i), Text: text, Context: "a_b", Vector: axis(i)})
			}
			c.commit("")
			look := func() {
				for _, text := range []string{"HTTP server", "get max_conns", "カード", "银行卡", "카드", "บัตร", "straße FINE", "b"} {
					c.compare(ranking(sdk.ModeLexical, weighted, 10, 10), sdk.Query{Text: text})
				}
			}
			look()
			c.restart()
			look()
		})
	}
}

// withoutLexical checks a collection that was made without an analyzer: texts
// are kept there, but not searched.
func (c *collection) withoutLexical() {
	c = c.fresh(sdk.Schema{Dimension: dimension})
	random := rand.New(rand.NewPCG(5, 3))
	c.put(randomEntry(random, 1), randomEntry(random, 2), randomEntry(random, 3))
	c.commitChecked("")
	c.compare(ranking(sdk.ModeDense, weighted, 10, 10), sdk.Query{Text: "word1", Vector: randomVector(random)})
	_, err := c.process.Stage.Retrieve(c.Context(), c.name, ranking(sdk.ModeLexical, weighted, 10, 10), []sdk.Query{{Text: "word1"}})
	c.refused("a lexical search without a lexical leg", err)
}
