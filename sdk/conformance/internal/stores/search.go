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

// retrieve searches the store.
func (c *collection) retrieve(r sdk.Ranking, queries ...sdk.Query) ([][]sdk.Candidate, error) {
	lists, err := c.process.Stage.Retrieve(c.Context(), c.name, r, vectorless(r.Mode, queries))
	if err == nil && len(lists) != len(queries) {
		err = fmt.Errorf("%s search: %d lists for %d queries", r.Mode, len(lists), len(queries))
	}
	return lists, err
}

// vectorless returns queries as a mode has them: a lexical one without vectors.
func vectorless(mode sdk.Mode, queries []sdk.Query) []sdk.Query {
	if mode != sdk.ModeLexical {
		return queries
	}
	all := slices.Clone(queries)
	for i := range all {
		all[i].Vector = nil
	}
	return all
}

// ways are those in which a store may give hits the score of the leg that did not find them. It has to be
// consistent in it.
var ways = []struct{ dense, lexical bool }{{true, true}, {false, false}, {true, false}, {false, true}}

// rankings are the whole rankings of what the model finds for each query, in each of the ways; nil for a
// query that is refused.
func (c *collection) rankings(r sdk.Ranking, queries ...sdk.Query) (all [][][]sdk.Candidate, err error) {
	for _, way := range ways {
		hits, refused := c.model.Search(c.Context(), c.name, r.Search, queries)
		lists := make([][]sdk.Candidate, len(hits))
		for i, h := range hits {
			for j := range h.Dense {
				if !way.dense {
					h.Dense[j].Lexical = sdk.Unscored
				}
			}
			for j := range h.Lexical {
				if !way.lexical {
					h.Lexical[j].Dense = sdk.Unscored
				}
			}
			lists[i] = support.Fuse(h, r.Fusion, len(h.Dense)+len(h.Lexical))
		}
		if all, err = append(all, lists), refused; r.Mode != sdk.ModeHybrid {
			break
		}
	}
	return all, err
}

// compare searches, and compares the candidates with what the model finds.
func (c *collection) compare(r sdk.Ranking, queries ...sdk.Query) {
	lists, err := c.retrieve(r, queries...)
	want, refused := c.rankings(r, queries...)
	if c.agree(fmt.Sprintf("%s search", r.Mode), err, refused); err != nil && len(lists) != len(queries) {
		return
	}
	var failed sdk.RowErrors // nobody looks at what such a query finds
	_ = errors.As(refused, &failed)
	differ := func(rankings [][]sdk.Candidate) error {
		for i, want := range rankings {
			if err := c.sameRanking(r, lists[i], want); err != nil && failed[i] == nil {
				return fmt.Errorf("query %d, filter %.300s: %w", i, queries[i].Filter, err)
			}
		}
		return nil
	}
	var first error
	for _, rankings := range want {
		err := differ(rankings)
		if err == nil {
			return
		}
		first = cmp.Or(first, err)
	}
	if first != nil {
		c.Errorf("%s search, fusion %q, %d candidates, top_k %d: %v", r.Mode, r.Method, r.NumCandidates, r.TopK, first)
	}
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
			c.near("score", r, g.Score, w.Score),
			c.near("dense score", r, g.Dense, w.Dense),
			c.near("lexical score", r, g.Lexical, w.Lexical),
			sameContent(g, w),
		); err != nil {
			return fmt.Errorf("place %d, %.60q: %w", i, g.ID, err)
		}
		if c.near("", r, w.Score, want[i].Score) != nil {
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
func (c *collection) near(what string, r sdk.Ranking, given, wanted float32) error {
	got, want := float64(given), float64(wanted)
	bound := c.Options.Tolerance * max(1, math.Abs(want))
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

var searchCases = slices.Concat(
	randomSearch("dense", ranking(sdk.ModeDense, weighted, 30, 20)),
	randomSearch("lexical", ranking(sdk.ModeLexical, weighted, 30, 20)),
	randomSearch("hybrid weighted", ranking(sdk.ModeHybrid, weighted, 30, 40)),
	randomSearch("hybrid rrf", ranking(sdk.ModeHybrid, rrf, 30, 40)),
	[]storeCase{
		{"ties by id", (*collection).ties},
		{"depth and top_k", (*collection).depths},
		{"nothing to find", (*collection).nothingToFind},
		{"texts only where asked", (*collection).textsAsked},
		{"one by one and together", (*collection).oneByOne},
	},
	everyAnalyzer(),
	[]storeCase{{"without a lexical leg", (*collection).withoutLexical}},
)

// randomSearch compares searches among a few hundred entries, before and after many
// of them were replaced and deleted: the statistics of the lexical leg are those
// of the living.
func randomSearch(name string, r sdk.Ranking) []storeCase {
	search := func(c *collection, change func(*rand.Rand)) {
		if r.Mode != sdk.ModeDense {
			c.needsLexical()
		}
		random := c.fill()
		change(random)
		c.compare(r, c.queries(random, 20, r.NumCandidates)...)
	}
	return []storeCase{
		{name + "/as put", func(c *collection) { search(c, func(*rand.Rand) {}) }},
		{name + "/after changes", func(c *collection) { search(c, c.replaceAndDelete) }},
	}
}

// replaceAndDelete changes two in five of the entries of fill, by two commits.
func (c *collection) replaceAndDelete(random *rand.Rand) {
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
}

// fill puts 300 random entries. It returns the generator, for more.
func (c *collection) fill() *rand.Rand {
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

// queries draws n queries whose first depth places are clear in each leg.
func (c *collection) queries(r *rand.Rand, n, depth int) []sdk.Query {
	var all []sdk.Query
	for range 500 * n {
		q := sdk.Query{Text: randomText(r, 1+r.IntN(6)), Vector: randomVector(r)}
		if c.clear(c.deepest(), q, depth) {
			if all = append(all, q); len(all) == n {
				return all
			}
		}
	}
	c.Skipf("with a tolerance of %v the order of too many entries is not clear", c.Options.Tolerance)
	return nil
}

// deepest is the mode that asks all legs of the collection.
func (c *collection) deepest() sdk.Mode { return c.modes()[len(c.modes())-1] }

// clear reports whether no two scores of the first places of a leg are so close that rounding could exchange
// them, unless they are equal.
func (c *collection) clear(mode sdk.Mode, q sdk.Query, depth int) bool {
	hits, err := c.model.Search(c.Context(), c.name, sdk.Search{Mode: mode, NumCandidates: depth + 1}, []sdk.Query{q})
	if err != nil {
		c.Fatalf("search the model: %v", err)
	}
	apart := func(before, after float32) bool {
		gap := float64(before) - float64(after)
		return gap == 0 || gap >= 4*c.Options.Tolerance*max(1, float64(after))
	}
	for i := 1; i < len(hits[0].Dense); i++ {
		if !apart(hits[0].Dense[i-1].Dense, hits[0].Dense[i].Dense) {
			return false
		}
	}
	for i := 1; i < len(hits[0].Lexical); i++ {
		if !apart(hits[0].Lexical[i-1].Lexical, hits[0].Lexical[i].Lexical) {
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
			lists, err := c.retrieve(r, q)
			want, refused := c.rankings(r, q)
			c.agree("search", err, refused)
			ids := idsOf(lists[0])
			if !slices.ContainsFunc(want, func(w [][]sdk.Candidate) bool { return slices.Equal(ids, idsOf(w[0][:min(depth, len(w[0]))])) }) {
				c.Errorf("%s, the %d best: %v, want %v", mode, depth, ids, idsOf(want[0][0]))
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
	empty, vector := c.fresh(c.schema), randomVector(c.fill())
	for _, mode := range c.modes() {
		r := ranking(mode, weighted, 10, 10)
		for _, q := range []sdk.Query{
			{Text: "word1", Vector: vector}, {Text: "unheard of", Vector: vector}, {Text: "", Vector: vector},
			{Text: " ?!\n\x00 ", Vector: vector}, {Text: "unheard", Vector: make([]float32, dimension)},
			{Text: "word1", Vector: make([]float32, dimension)},
		} {
			empty.compare(r, q)
			c.compare(r, q)
		}
		c.compare(r) // no query
	}
	c.delete(c.ids()...)
	c.commit("emptied")
	for _, mode := range c.modes() {
		c.compare(ranking(mode, weighted, 10, 10), sdk.Query{Text: "word1", Vector: vector})
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

// everyAnalyzer checks that texts and queries go through the analyzer that the
// collection was made with, in another process, too.
func everyAnalyzer() (all []storeCase) {
	for _, name := range support.AnalyzerNames() {
		all = append(all, storeCase{"every analyzer/" + name, func(c *collection) { c.analyzer(name) }})
	}
	return all
}

func (c *collection) analyzer(name string) {
	c.needsLexical()
	c = c.fresh(sdk.Schema{Dimension: dimension, Analyzer: name})
	for i, text := range []string{
		"func getHTTPServer(max_conns int)", "the http server has 9 conns", "クレジットカードをなくした", "カードの残高", "我的银行卡丢了怎么办", "카드를 분실했다", "บัตรเครดิตหาย", "Straße ﬁne",
	} {
		c.put(sdk.Entry{ID: fmt.Sprint(i), Text: text, Context: "a_b", Vector: axis(i)})
	}
	c.commit("")
	for range 2 {
		for _, text := range []string{"HTTP server", "get max_conns", "カード", "银行卡", "카드", "บัตร", "straße FINE", "b"} {
			c.compare(ranking(sdk.ModeLexical, weighted, 10, 10), sdk.Query{Text: text})
		}
		c.restart()
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
	c.compare(ranking(sdk.ModeLexical, weighted, 10, 10), sdk.Query{Text: "word1"}) // is refused
}
