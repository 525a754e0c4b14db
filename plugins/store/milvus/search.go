package milvus

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

// workers is how many calls of one search are on their way at a time.
const workers = 4

// search finds the best entries of each side. Where a query has a vector,
// lexical hits carry their cosine too, and where the lexical side was asked,
// dense hits carry their BM25 score.
func (c *collection) search(ctx context.Context, s sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	opened := c.known()
	if opened == nil {
		return nil, c.notOpen()
	}
	dense, lexical, err := opened.sides(s.Mode)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	var hits []sdk.Hits
	faults := sdk.RowErrors{}
	err = c.read(ctx, func(st *state) error {
		clear(faults)
		probes := make([]*probe, len(queries))
		for i, q := range queries {
			p, err := st.newProbe(q, dense)
			if err != nil {
				faults[i] = sdk.Invalid(err)
				continue
			}
			probes[i] = p
		}
		if depth := max(s.NumCandidates, 0); depth > 0 && st.record.Entries > 0 {
			if err := c.probe(ctx, st, probes, depth, dense, lexical, s.Texts); err != nil {
				return err
			}
		}
		hits = make([]sdk.Hits, len(queries))
		for i, p := range probes {
			if p != nil {
				hits[i] = p.hits(dense, lexical)
			}
		}
		return nil
	})
	if err == nil && len(faults) > 0 {
		err = faults
	}
	return hits, err
}

// sides says which sides a mode asks.
func (s shape) sides(m sdk.Mode) (dense, lexical bool, err error) {
	dense, lexical = m != sdk.ModeLexical, m != sdk.ModeDense
	switch {
	case m != sdk.ModeHybrid && m != sdk.ModeDense && m != sdk.ModeLexical:
		err = fmt.Errorf("unknown search mode %q", m)
	case dense && s.schema.Dimension == 0:
		err = fmt.Errorf("a %s search needs vectors and this collection has none: use mode %q", m, sdk.ModeLexical)
	case lexical && s.analyzer == nil:
		err = fmt.Errorf("a %s search needs an analyzer and this collection was built without: use mode %q", m, sdk.ModeDense)
	}
	return dense, lexical, err
}

// probe is one query on its way.
type probe struct {
	vector    []float32 // nil: it has none, or one without direction
	terms     []term
	filter    *sdk.Filter
	condition condition

	dense, lexical []hit
}

// hit is a row that a side found, with both scores.
type hit struct {
	*found
	dense, lexical float32
}

func (s *state) newProbe(q sdk.Query, needed bool) (*probe, error) {
	p := &probe{filter: q.Filter, condition: all}
	switch x := q.Vector; {
	case len(x) == 0 && needed:
		return nil, errors.New("the query has no vector")
	case len(x) > 0 && len(x) != s.schema.Dimension:
		return nil, fmt.Errorf("the query's vector has %d dimensions and the collection's have %d", len(x), s.schema.Dimension)
	case !finite(x):
		return nil, errors.New("the query's vector has NaN or an infinity in it")
	case !isZero(x):
		p.vector = make([]float32, width(len(x)))
		copy(p.vector, unit(x))
	}
	if q.Filter != nil {
		if err := q.Filter.Check(); err != nil {
			return nil, err
		}
		p.condition = translate(q.Filter, false)
	}
	if s.analyzer != nil {
		p.terms = s.queryTerms(*s.analyzer, q.Text)
	}
	return p, nil
}

func isZero(x []float32) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}

// probe asks both sides at once. The cosines of what the lexical side found
// are asked for while the dense side is still at work.
func (c *collection) probe(ctx context.Context, s *state, probes []*probe, depth int, dense, lexical, texts bool) error {
	g, ctx := errgroup.WithContext(ctx)
	if lexical {
		// First, because more comes after it.
		g.Go(func() error {
			if err := c.findAll(ctx, s, probes, depth, lexicalSide{c.formula(s)}, texts); err != nil {
				return err
			}
			return c.addCosines(ctx, s, probes)
		})
	}
	if dense {
		g.Go(func() error {
			by := denseSide{}
			if lexical {
				f := c.formula(s)
				by.formula = &f
			}
			return c.findAll(ctx, s, probes, depth, by, texts)
		})
	}
	return g.Wait()
}

func (c *collection) formula(s *state) bm25 {
	return newBM25(c.server.config.K1, c.server.config.B, s.record.average())
}

// hits returns what was found.
func (p *probe) hits(dense, lexical bool) sdk.Hits {
	var h sdk.Hits
	if dense {
		h.Dense = sdkHits(p.dense)
	}
	if lexical {
		h.Lexical = sdkHits(p.lexical)
	}
	return h
}

func sdkHits(all []hit) []sdk.Hit {
	hits := make([]sdk.Hit, len(all))
	for i := range all {
		hits[i] = sdk.Hit{ID: all[i].entry.ID, Dense: all[i].dense, Lexical: all[i].lexical, Entry: &all[i].entry}
	}
	return hits
}
