package milvus

import (
	"cmp"
	"context"
	"slices"

	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

// side is one side of a search.
type side interface {
	field() string
	// vector is what a server is asked with; nil: nothing can match.
	vector(p *probe) entity.Vector
	params(c *collection, s *state, limit int) entity.SearchParam
	counts() bool // whether score reads the counts of a row
	// score sets the scores of a hit and returns the one that ranks it.
	score(p *probe, h *hit) float32
	// reach is how much higher than the server's a score of ours can be.
	reach(s *state) float32
	put(p *probe, hits []hit)
}

// denseSide scores words too where it has the formula for it.
type denseSide struct{ formula *bm25 }

func (denseSide) field() string { return fieldVector }
func (denseSide) vector(p *probe) entity.Vector {
	if p.vector == nil {
		return nil
	}
	return entity.FloatVector(p.vector)
}
func (denseSide) params(c *collection, s *state, limit int) entity.SearchParam {
	return c.denseParams(s.indexType, limit)
}
func (d denseSide) counts() bool { return d.formula != nil }
func (d denseSide) score(p *probe, h *hit) float32 {
	h.dense, h.lexical = h.found.score, sdk.Unscored
	if d.formula != nil {
		h.lexical = d.formula.score(p.terms, h.counts)
	}
	return h.dense
}
func (denseSide) reach(*state) float32     { return 1 }
func (denseSide) put(p *probe, hits []hit) { p.dense = hits }

type lexicalSide struct{ formula bm25 }

func (lexicalSide) field() string { return fieldWords }
func (lexicalSide) vector(p *probe) entity.Vector {
	if len(p.terms) == 0 {
		return nil
	}
	return queryVector(p.terms)
}
func (lexicalSide) params(*collection, *state, int) entity.SearchParam { return lexicalParams() }
func (lexicalSide) counts() bool                                       { return true }
func (l lexicalSide) score(p *probe, h *hit) float32 {
	h.lexical, h.dense = l.formula.score(p.terms, h.counts), sdk.Unscored
	return h.lexical
}

// reach follows from the formula: with the average length a in place of a0, the
// part of a row's score that a word gives grows by a factor of at most a/a0, and
// not at all where a is smaller.
func (lexicalSide) reach(s *state) float32 {
	if s.record.Lowest <= 0 {
		return 1
	}
	return float32(max(1, s.record.average()/s.record.Lowest))
}
func (lexicalSide) put(p *probe, hits []hit) { p.lexical = hits }

// findAll finds the best entries of all probes. Those with one filter are sent
// together.
func (c *collection) findAll(ctx context.Context, s *state, probes []*probe, depth int, by side, texts bool) error {
	groups := map[string][]*probe{}
	for _, p := range probes {
		if p != nil && !p.condition.none && by.vector(p) != nil {
			groups[p.condition.expr] = append(groups[p.condition.expr], p)
		}
	}
	var parts [][]*probe
	for _, group := range groups {
		parts = slices.AppendSeq(parts, slices.Chunk(group, 64))
	}
	if len(parts) == 1 { // most often, and a new goroutine's stack has to grow first
		return c.find(ctx, s, parts[0], depth, by, texts)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, part := range parts {
		g.Go(func() error { return c.find(ctx, s, part, depth, by, texts) })
	}
	return g.Wait()
}

// first is how many rows are read for a depth at first: some more, because dead
// rows and ties fall away, and more again where the server's order is less exact.
func first(s *state, depth int, reach float32) int {
	n := depth + 16 + int(8*float32(depth)*(reach-1))
	return min(n+min(len(s.dead), depth), maxLimit)
}

// find reads as many rows as it takes to be sure of the best. Rows that are not
// of the state, such as those of a writer at work, can take the place of others;
// then the server has to leave them out, and until the next commit from the start.
func (c *collection) find(ctx context.Context, s *state, probes []*probe, depth int, by side, texts bool) error {
	limit := first(s, depth, by.reach(s))
	narrow := c.crowded.Load() == s.record.Commit
	for len(probes) > 0 {
		answers, err := c.ask(ctx, s, probes, limit, narrow, by, texts)
		if err != nil {
			return err
		}
		var unsure []*probe
		hidden := 0
		for i, p := range probes {
			hits, sure := settleHits(s, p, answers[i], depth, limit, by)
			by.put(p, hits)
			if !sure {
				unsure = append(unsure, p)
				hidden += answers[i].hidden
			}
		}
		if hidden > 0 {
			c.crowded.Store(s.record.Commit)
			probes, narrow = unsure, true
			continue
		}
		if limit == maxLimit {
			for _, p := range unsure {
				if err := c.exhaust(ctx, s, p, depth, by, texts); err != nil {
					return err
				}
			}
			return nil
		}
		probes, limit = unsure, min(4*limit, maxLimit)
	}
	return nil
}

// tolerance is how far the sums of a server may be from ours by rounding.
const tolerance = 1e-5

// longList is the depth from which on the server may choose which of the
// entries that tie with the last one are in a list.
const longList = 100

// settleHits scores what the server returned, keeps the best and reports
// whether no row that it did not return can belong to them.
func settleHits(s *state, p *probe, a answer, depth, limit int, by side) ([]hit, bool) {
	hits := make([]hit, 0, len(a.rows))
	for i := range a.rows {
		if h, ok := accept(s, p, &a.rows[i], by); ok {
			hits = append(hits, h)
		}
	}
	hits = best(hits, depth, by)
	if len(a.rows)+a.hidden < limit {
		return hits, true // there are no others
	}
	if len(hits) < depth {
		return hits, false
	}
	last, bound := rank(hits[depth-1], by), a.lowest*by.reach(s)
	slack := tolerance * max(1, bound)
	if last > bound+slack {
		return hits, true
	}
	// In a long list of short texts hundreds may tie with the last one.
	return hits, depth > longList && last >= bound-slack && a.lowest >= bound-slack
}

// accept scores a row unless it is dead or the filter does not select it.
func accept(s *state, p *probe, r *found, by side) (hit, bool) {
	if _, dead := s.dead[r.sequence]; dead || !p.filter.Match(r.entry.ID, r.entry.Label, r.entry.Meta) {
		return hit{}, false
	}
	h := hit{found: r}
	score := by.score(p, &h)
	_, lexical := by.(lexicalSide)
	return h, !lexical || score > 0
}

func rank(h hit, by side) float32 {
	if _, lexical := by.(lexicalSide); lexical {
		return h.lexical
	}
	return h.dense
}

// best sorts hits and keeps depth of them. Equal scores stand in the order of
// the ids.
func best(hits []hit, depth int, by side) []hit {
	slices.SortFunc(hits, func(a, b hit) int {
		if a, b := rank(a, by), rank(b, by); a != b {
			return cmp.Compare(b, a)
		}
		return cmp.Compare(a.entry.ID, b.entry.ID)
	})
	return hits[:min(depth, len(hits))]
}
