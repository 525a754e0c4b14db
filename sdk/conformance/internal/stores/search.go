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

// ranking returns a search for the topK best out of n candidates per leg.
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

// vectorless returns queries in the form of a mode: for a lexical search, without vectors.
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

// ways are the possible behaviours of a store if only one leg found a hit: it may know the score of
// the dense leg, and of the lexical leg, or not. A store has to be consistent.
var ways = []struct{ dense, lexical bool }{{true, true}, {false, false}, {true, false}, {false, true}}

// rankings returns the complete ranking of the model's hits for each query, in each of the ways; nil
// for a query that is refused.
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

// compare searches, and compares the candidates with the model's.
func (c *collection) compare(r sdk.Ranking, queries ...sdk.Query) {
	lists, err := c.retrieve(r, queries...)
	want, refused := c.rankings(r, queries...)
	if c.agree(fmt.Sprintf("%s search", r.Mode), err, refused); err != nil && len(lists) != len(queries) {
		return
	}
	var failed sdk.RowErrors // the results of refused queries do not matter
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

// sameRanking compares candidates with the head of the complete ranking. Candidates whose scores
// differ only by rounding may change places.
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
		if c.ordered && g.ID != want[i].ID {
			return fmt.Errorf("place %d has %.60q, want %.60q, which has the same score", i, g.ID, want[i].ID)
		}
		if i > 0 && (got[i-1].Score < g.Score || r.Mode != sdk.ModeHybrid && tied(got[i-1], g) && got[i-1].ID > g.ID) {
			return fmt.Errorf("places %d and %d, %.60q and %.60q, stand the wrong way round", i-1, i, got[i-1].ID, g.ID)
		}
	}
	return nil
}

// tied compares the scores of one leg; the other leg's scores are not numbers.
func tied(a, b sdk.Candidate) bool {
	return a.Score == b.Score && (a.Dense == b.Dense || a.Lexical == b.Lexical)
}

// near compares scores. The score of the other leg may be unknown.
func (c *collection) near(what string, r sdk.Ranking, given, wanted float32) error {
	got, want := float64(given), float64(wanted)
	bound := c.Options.Tolerance * max(1, math.Abs(want))
	if what != "dense score" && what != "lexical score" && r.Method == support.RRF {
		bound = 1e-6 // ranks are integers
	}
	switch {
	case math.IsNaN(want) || math.IsNaN(got) && r.Mode == sdk.ModeHybrid && what != "score":
		return nil
	case !(math.Abs(got-want) <= bound):
		return fmt.Errorf("%s %v, want %v", what, got, want)
	}
	return nil
}

func searchFacts() []fact {
	return slices.Concat(
		randomSearch("dense", ranking(sdk.ModeDense, weighted, 30, 20)),
		randomSearch("lexical", ranking(sdk.ModeLexical, weighted, 30, 20)),
		randomSearch("hybrid weighted", ranking(sdk.ModeHybrid, weighted, 30, 40)),
		randomSearch("hybrid rrf", ranking(sdk.ModeHybrid, rrf, 30, 40)),
		[]fact{
			{name: "ties by id", steps: ties()},
			{name: "depth and top_k", steps: []step{corpus, depths}},
			{name: "nothing to find", steps: []step{nothing, corpus, nothing, func(c *collection) { c.delete(c.scan(sdk.Scan{})...) }, commit("emptied"), nothing}},
		},
		everyAnalyzer(),
		[]fact{{name: "without a lexical leg", schema: sdk.Schema{Dimension: dimension}, steps: []step{
			put(corpusEntries()[:3]...), commit(""), search(ranking(sdk.ModeLexical, weighted, 10, 10), sdk.Query{Text: "word1"}), // refused
		}}},
	)
}

// corpusEntries returns 300 random entries.
func corpusEntries() []sdk.Entry {
	random := rand.New(rand.NewPCG(5, 2))
	return many(300, func(i int) sdk.Entry { return randomEntry(random, i) })
}

func many(n int, entry func(i int) sdk.Entry) []sdk.Entry {
	all := make([]sdk.Entry, n)
	for i := range all {
		all[i] = entry(i)
	}
	return all
}

// corpus puts and commits the entries of corpusEntries.
func corpus(c *collection) {
	all := corpusEntries()
	c.do(put(all[:100]...), put(all[100:]...), commit("corpus"))
}

// randomSearch compares searches in the corpus, one by one and many in a call. It does so before and
// after two commits that replace or delete two in five of the entries: the statistics of the lexical
// leg must count only entries that still exist.
func randomSearch(name string, r sdk.Ranking) []fact {
	search := func(c *collection) {
		if !slices.Contains(c.modes(), r.Mode) {
			c.Skipf("dense only: %s", c.Options.DenseOnly)
		}
		queries := c.queries(70, r.NumCandidates)
		c.compare(r, queries...)
		for _, q := range queries[:10] {
			c.compare(r, q)
		}
	}
	random := rand.New(rand.NewPCG(5, 3))
	other := many(301, func(i int) sdk.Entry { return randomEntry(random, i) })
	var changed []sdk.Entry
	var gone []string
	for i := 1; i < 300; i += 5 {
		changed, gone = append(changed, other[i]), append(gone, fmt.Sprint("e", i+1))
	}
	return []fact{
		{name: name + "/as put", steps: []step{corpus, search}},
		{name: name + "/after changes", steps: []step{
			corpus, put(changed...), del(gone...), commit("changed"), put(other[300], other[2], other[3]), del("e4"), commit("changed again"), search,
		}},
	}
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

// randomText draws words; a few words are frequent and many are rare.
func randomText(r *rand.Rand, words int) string {
	all := make([]string, words)
	for i := range all {
		all[i] = fmt.Sprintf("Word%d", int(r.ExpFloat64()*25))
	}
	return strings.Join(all, " ")
}

// randomVector returns a vector of random direction, with a length from 0.1 to 10.
func randomVector(r *rand.Rand) []float32 {
	x := make([]float32, dimension)
	length := math.Pow(10, 2*r.Float64()-1)
	for i := range x {
		x[i] = float32(length * r.NormFloat64())
	}
	return x
}

// queries draws n queries for which the order of the first depth hits of each leg is clear.
func (c *collection) queries(n, depth int) []sdk.Query {
	random := rand.New(rand.NewPCG(7, 3))
	var all []sdk.Query
	for range 500 * n {
		q := sdk.Query{Text: randomText(random, 1+random.IntN(6)), Vector: randomVector(random)}
		if c.clear(q, depth) {
			if all = append(all, q); len(all) == n {
				return all
			}
		}
	}
	c.Skipf("with a tolerance of %v the order of too many entries is not clear", c.Options.Tolerance)
	return nil
}

// clear reports whether the order of the first hits of each leg is clear: no two scores are so close
// that rounding could exchange them, unless they are equal.
func (c *collection) clear(q sdk.Query, depth int) bool {
	modes := c.modes()
	hits, err := c.model.Search(c.Context(), c.name, sdk.Search{Mode: modes[len(modes)-1], NumCandidates: depth + 1}, []sdk.Query{q})
	if err != nil {
		c.Fatalf("search the model: %v", err)
	}
	apart := func(leg []sdk.Hit, score func(sdk.Hit) float32) bool {
		for i := 1; i < len(leg); i++ {
			before, after := float64(score(leg[i-1])), float64(score(leg[i]))
			if before != after && before-after < 4*c.Options.Tolerance*max(1, after) {
				return false
			}
		}
		return true
	}
	return apart(hits[0].Dense, func(h sdk.Hit) float32 { return h.Dense }) && apart(hits[0].Lexical, func(h sdk.Hit) float32 { return h.Lexical })
}

// ties returns steps that check that equal scores are sorted by the ids, even if only some of the
// entries are wanted.
func ties() []step {
	order := rand.New(rand.NewPCG(1, 2)).Perm(40)
	entries := many(42, func(i int) sdk.Entry {
		if i < 40 {
			return sdk.Entry{ID: fmt.Sprintf("t%d", order[i]), Text: "the same text", Vector: axis(order[i] % 2)}
		}
		return sdk.Entry{ID: []string{"T", "é"}[i-40], Text: "the same text", Vector: axis(1)}
	})
	steps := []step{func(c *collection) { c.ordered = true }, put(entries[:20]...), put(entries[20:]...), commit("")}
	for _, depth := range []int{1, 5, 21, 100} {
		steps = append(steps, func(c *collection) {
			for _, mode := range c.modes() {
				c.compare(ranking(mode, weighted, depth, depth), sdk.Query{Text: "same", Vector: axis(1)})
			}
		})
	}
	return steps
}

// axis is the unit vector along an axis.
func axis(i int) []float32 {
	x := make([]float32, dimension)
	x[i%dimension] = 1
	return x
}

// depths compares short and long lists, with texts and without.
func depths(c *collection) {
	queries := c.queries(3, 60)
	for _, mode := range c.modes() {
		for i, d := range []struct{ depth, topK int }{
			{0, 10}, {10, 0}, {0, 0}, {1, 1}, {1, 10}, {10, 1}, {60, 7}, {7, 60}, {1000, 1000}, {5000, 3},
		} {
			for _, f := range []sdk.Fusion{weighted, rrf} {
				r := ranking(mode, f, d.depth, d.topK)
				if r.Texts = i%2 == 0; d.depth <= 60 || f != rrf { // queries makes only the first 60 hits clear, and rrf counts ranks
					c.compare(r, queries...)
				}
			}
		}
	}
}

// nothing compares searches for words that do not occur, or for nothing.
func nothing(c *collection) {
	vector := corpusEntries()[0].Vector
	for _, mode := range c.modes() {
		c.compare(ranking(mode, weighted, 10, 10)) // no query
		c.compare(ranking(mode, weighted, 400, 10), []sdk.Query{
			{Text: "word1", Vector: vector}, {Text: "unheard of", Vector: vector}, {Text: "", Vector: vector}, {Text: " ?!\n\x00 ", Vector: vector},
			{Text: "unheard", Vector: make([]float32, dimension)}, {Text: "word1", Vector: make([]float32, dimension)},
		}...)
	}
}

// everyAnalyzer checks that texts and queries go through the collection's analyzer, also in another
// process.
func everyAnalyzer() (all []fact) {
	var entries []sdk.Entry
	for i, text := range []string{
		"func getHTTPServer(max_conns int)", "the http server has 9 conns", "クレジットカードをなくした", "カードの残高", "我的银行卡丢了怎么办", "카드를 분실했다", "บัตรเครดิตหาย", "Straße ﬁne",
	} {
		entries = append(entries, sdk.Entry{ID: fmt.Sprint(i), Text: text, Context: "a_b", Vector: axis(i)})
	}
	var queries []sdk.Query
	for _, text := range []string{"HTTP server", "get max_conns", "カード", "银行卡", "카드", "บัตร", "straße FINE", "b"} {
		queries = append(queries, sdk.Query{Text: text})
	}
	find := search(ranking(sdk.ModeLexical, weighted, 10, 10), queries...)
	for _, name := range support.AnalyzerNames() {
		all = append(all, fact{"every analyzer/" + name, []step{put(entries...), commit(""), find, (*collection).restart, find}, sdk.Schema{Dimension: dimension, Analyzer: name}})
	}
	return all
}
