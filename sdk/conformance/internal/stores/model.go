package stores

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// model is the content of a collection. Its searches are the definition that a
// store is compared with: everything is scored, in float64, and sorted.
type model map[string]sdk.Entry

// scored is an entry with its score.
type scored struct {
	id    string
	score float64
}

// dense ranks the entries that a query's filter selects by the cosine of the
// vectors.
func (m model) dense(q sdk.Query) []scored {
	if norm(q.Vector) == 0 {
		return nil
	}
	var all []scored
	for id, e := range m {
		if q.Filter.Match(id, e.Label, e.Meta) {
			all = append(all, scored{id, cosine(q.Vector, e.Vector)})
		}
	}
	return bestFirst(all)
}

// The parameters of BM25 that a store has by default.
const bm25K1, bm25B = 1.2, 0.75

// statistics are what BM25 counts of a model.
type statistics struct {
	model
	counts  map[string]map[string]float64 // id -> word -> how often
	lengths map[string]float64            // id -> words
	df      map[string]float64            // word -> entries
	total   float64                       // words of all entries
	words   support.Analyzer
}

func (m model) statistics(words support.Analyzer) *statistics {
	s := &statistics{m, map[string]map[string]float64{}, map[string]float64{}, map[string]float64{}, 0, words}
	for id, e := range m {
		all := words.Append(words.Append(nil, e.Context), e.Text)
		s.counts[id], s.lengths[id] = map[string]float64{}, float64(len(all))
		s.total += s.lengths[id]
		for _, w := range all {
			if s.counts[id][w]++; s.counts[id][w] == 1 {
				s.df[w]++
			}
		}
	}
	return s
}

// lexical ranks those of the selected entries that have a word of the query by
// BM25, as sdk.Hits says.
func (s *statistics) lexical(q sdk.Query) []scored {
	n := float64(len(s.model))
	query := s.words.Append(nil, q.Text)
	var all []scored
	for id, e := range s.model {
		if !q.Filter.Match(id, e.Label, e.Meta) {
			continue
		}
		sum := 0.0
		for _, w := range query {
			if tf := s.counts[id][w]; tf > 0 {
				idf := math.Log(1 + (n-s.df[w]+0.5)/(s.df[w]+0.5))
				sum += idf * tf / (tf + bm25K1*(1-bm25B+bm25B*s.lengths[id]*n/s.total))
			}
		}
		if sum > 0 {
			all = append(all, scored{id, sum})
		}
	}
	return bestFirst(all)
}

func bestFirst(all []scored) []scored {
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
	return all
}

// crossed says which hits carry the score of the leg that did not find them.
type crossed struct{ dense, lexical bool }

// found is what each leg finds for a query; nil where it was not asked, which
// package support distinguishes from nothing.
type found struct{ dense, lexical []scored }

// rank returns the whole ranking of what was found.
func (f found) rank(r sdk.Ranking, x crossed) []sdk.Candidate {
	var hits sdk.Hits
	cosines, weights := scores(f.dense), scores(f.lexical)
	if f.dense != nil {
		hits.Dense = head(f.dense, r.NumCandidates, func(s scored) sdk.Hit {
			h := sdk.Hit{ID: s.id, Dense: float32(s.score), Lexical: sdk.Unscored}
			if x.dense && f.lexical != nil {
				h.Lexical = float32(weights[s.id])
			}
			return h
		})
	}
	if f.lexical != nil {
		hits.Lexical = head(f.lexical, r.NumCandidates, func(s scored) sdk.Hit {
			h := sdk.Hit{ID: s.id, Dense: sdk.Unscored, Lexical: float32(s.score)}
			if c, ok := cosines[s.id]; ok && x.lexical {
				h.Dense = float32(c)
			}
			return h
		})
	}
	return support.Fuse(hits, r.Fusion, len(hits.Dense)+len(hits.Lexical))
}

func head(all []scored, n int, hit func(scored) sdk.Hit) []sdk.Hit {
	hits := make([]sdk.Hit, min(n, len(all)))
	for i := range hits {
		hits[i] = hit(all[i])
	}
	return hits
}

func scores(all []scored) map[string]float64 {
	m := map[string]float64{}
	for _, s := range all {
		m[s.id] = s.score
	}
	return m
}

func norm(v []float32) float64 { return math.Sqrt(dot(v, v)) }

// cosine is 0 where a vector is.
func cosine(a, b []float32) float64 {
	if product := norm(a) * norm(b); product != 0 {
		return dot(a, b) / product
	}
	return 0
}

// sameEntry compares an entry with what was put.
func sameEntry(got, want sdk.Entry, texts, vectors bool) error {
	switch {
	case got.ID != want.ID:
		return fmt.Errorf("entry %.60q where %.60q should be", got.ID, want.ID)
	case !bytes.Equal(got.Hash, want.Hash):
		return fmt.Errorf("entry %.60q has hash %x, want %x", got.ID, got.Hash, want.Hash)
	case !vectors && len(got.Vector) > 0:
		return fmt.Errorf("entry %.60q has a vector that was not asked for", got.ID)
	case vectors && len(got.Vector) != len(want.Vector):
		return fmt.Errorf("entry %.60q has a vector of %d dimensions, want %d", got.ID, len(got.Vector), len(want.Vector))
	case vectors && norm(want.Vector) > 0 && !(cosine(got.Vector, want.Vector) > 1-1e-6), vectors && norm(want.Vector) == 0 && norm(got.Vector) != 0:
		return fmt.Errorf("entry %.60q has vector %v, want the direction of %v", got.ID, got.Vector, want.Vector)
	}
	return sameContent(sdk.Candidate{ID: got.ID, Label: got.Label, Text: got.Text, Context: got.Context, Meta: got.Meta}, want, texts)
}

// sameContent compares what a candidate carries with what was put.
func sameContent(got sdk.Candidate, want sdk.Entry, texts bool) error {
	if !texts {
		want.Text, want.Context, want.Meta = "", "", nil
	}
	if got.Label != want.Label || got.Text != want.Text || got.Context != want.Context || !maps.Equal(got.Meta, want.Meta) {
		return fmt.Errorf("entry %.60q has label %.60q, text %.60q (%d bytes), context %.60q and metadata %.200v, want %.60q, %.60q (%d), %.60q and %.200v",
			got.ID, got.Label, got.Text, len(got.Text), got.Context, fmt.Sprintf("%#v", got.Meta), want.Label, want.Text, len(want.Text), want.Context, fmt.Sprintf("%#v", want.Meta))
	}
	return nil
}
