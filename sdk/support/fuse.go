package support

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// This file merges the two legs of a search into one ranking: the dense leg, which compares vectors,
// and the lexical leg, which compares words.
//
// Every store returns a list per leg, and only this package merges them. So the same knowledge ranks
// alike in every store. The package does not search, does not fetch entries, and does not know how a
// leg computes its scores.

// The methods of sdk.Fusion.
const (
	// Weighted adds the scores: DenseWeight·dense + (1-DenseWeight)·lexical/m. Here m is the highest
	// lexical score of the query. An unknown score counts as 0.
	Weighted = "weighted"
	// RRF is reciprocal rank fusion: the sum of 1/(K+rank) over the legs that found the entry, with
	// ranks from 1 (Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and
	// individual rank learning methods", SIGIR 2009; they use K = 60).
	RRF = "rrf"
)

// CheckFusion reports what is wrong with a fusion. Fuse accepts only checked fusions.
func CheckFusion(f sdk.Fusion) error {
	switch f.Method {
	case Weighted:
		if !(f.DenseWeight >= 0 && f.DenseWeight <= 1) {
			return fmt.Errorf("the dense weight is %v; give one from 0 to 1", f.DenseWeight)
		}
	case RRF:
		if f.K < 0 {
			return fmt.Errorf("the rank constant is %d; give 0 or more, 60 is usual", f.K)
		}
	default:
		return fmt.Errorf("unknown fusion method %q; use %q or %q", f.Method, Weighted, RRF)
	}
	return nil
}

// Fuse merges the legs of one query's search and returns the topK best candidates, best first.
//
// The candidates are the union of both legs. If only one leg found an entry, but also knows the other
// leg's score, Weighted uses that score; RRF counts only ranks. A leg that was not asked (nil) does
// not count: the other leg scores alone, as dense, as lexical/m or as 1/(K+rank).
//
// Candidates with equal scores are sorted by the dense score, then by the lexical score, highest
// first and Unscored last, and then by the id. Text, label and metadata are set if a hit carries its
// entry. Fuse panics on an unknown method; see CheckFusion.
func Fuse(hits sdk.Hits, f sdk.Fusion, topK int) []sdk.Candidate {
	union := merge(hits)
	switch f.Method {
	case Weighted:
		dense, lexical := shares(hits, f.DenseWeight)
		scoreWeighted(union, dense, lexical)
	case RRF:
		scoreRanks(union, f.K)
	default:
		panic("fuse: unknown method " + f.Method)
	}
	union = best(union, topK)
	candidates := make([]sdk.Candidate, len(union))
	for i, u := range union {
		c := sdk.Candidate{ID: u.id, Score: u.score, Dense: u.dense, Lexical: u.lexical}
		if e := u.entry; e != nil {
			c.Text, c.Label, c.Context, c.Meta = e.Text, e.Label, e.Context, e.Meta
		}
		candidates[i] = c
	}
	return candidates
}

// foundEntry is an entry that at least one leg found.
type foundEntry struct {
	id                     string
	score, dense, lexical  float32
	denseRank, lexicalRank int32 // from 1; 0: this leg did not find the entry
	entry                  *sdk.Entry
}

func merge(hits sdk.Hits) []foundEntry {
	union := make([]foundEntry, 0, len(hits.Dense)+len(hits.Lexical))
	var position map[string]int // of an id in union, if both legs found something
	if len(hits.Dense) > 0 && len(hits.Lexical) > 0 {
		position = make(map[string]int, len(hits.Dense))
	}
	for i, h := range hits.Dense {
		if position != nil {
			position[h.ID] = len(union)
		}
		union = append(union, foundEntry{id: h.ID, dense: h.Dense, lexical: h.Lexical, denseRank: int32(i + 1), entry: h.Entry})
	}
	for i, h := range hits.Lexical {
		p, ok := position[h.ID]
		if !ok {
			union = append(union, foundEntry{id: h.ID, dense: h.Dense, lexical: h.Lexical, lexicalRank: int32(i + 1), entry: h.Entry})
			continue
		}
		u := &union[p]
		u.lexical, u.lexicalRank = h.Lexical, int32(i+1)
		if u.entry == nil {
			u.entry = h.Entry
		}
	}
	return union
}

// shares returns the weight of each leg. A leg that was asked alone has the whole weight.
func shares(hits sdk.Hits, denseWeight float64) (dense, lexical float64) {
	switch {
	case hits.Lexical == nil:
		return 1, 0
	case hits.Dense == nil:
		return 0, 1
	}
	return denseWeight, 1 - denseWeight
}

func scoreWeighted(union []foundEntry, dense, lexical float64) {
	var top float32
	for _, u := range union {
		if u.lexical > top {
			top = u.lexical
		}
	}
	if top > 0 {
		lexical /= float64(top)
	}
	for i := range union {
		u := &union[i]
		u.score = float32(dense*known(u.dense) + lexical*known(u.lexical))
	}
}

// known returns a leg's score, or 0 if there is none.
func known(score float32) float64 {
	if score != score {
		return 0
	}
	return float64(score)
}

func scoreRanks(union []foundEntry, k int) {
	for i := range union {
		u := &union[i]
		u.score = float32(reciprocal(k, u.denseRank) + reciprocal(k, u.lexicalRank))
	}
}

func reciprocal(k int, rank int32) float64 {
	if rank == 0 {
		return 0
	}
	return 1 / (float64(k) + float64(rank))
}

// compare sorts found entries best first. For cmp.Compare, NaN is smaller than every number, so
// unscored entries come last.
func compare(a, b foundEntry) int {
	if c := cmp.Compare(b.score, a.score); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(b.dense, a.dense), cmp.Compare(b.lexical, a.lexical), cmp.Compare(a.id, b.id))
}

// best returns the k best entries, best first. It does not sort entries that score less than the last
// of these.
func best(all []foundEntry, k int) []foundEntry {
	k = min(max(k, 0), len(all))
	if 0 < k && k < len(all) {
		scores := make([]float32, len(all))
		for i, f := range all {
			scores[i] = f.score
		}
		slices.Sort(scores)
		least := scores[len(all)-k]
		all = slices.DeleteFunc(all, func(f foundEntry) bool { return f.score < least })
	}
	slices.SortFunc(all, compare)
	return all[:k]
}
