package entries

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// query is a query of a search, with the hits of the legs.
type query struct {
	text      string    // as sent to the server; empty: no words
	vector    []float32 // as sent to the server; nil: none, or a zero vector
	filter    *sdk.Filter
	condition table.Condition // the translated filter

	hits [2][]hit // by leg
}

// hit is a row that a leg found, with both scores.
type hit struct {
	sdk.Entry
	key    string
	scores [2]float32
}

// Search finds the best entries of each leg. In a hybrid search, hits of both legs have both scores. The SDK gets the
// texts of the hits that it keeps.
func (c *Collection) Search(ctx context.Context, search sdk.Search, given []sdk.Query) ([]sdk.Hits, error) {
	legs, err := c.legs(search)
	if err != nil {
		return nil, err
	}
	var queries []*query
	var at []int
	invalid := sdk.RowErrors{}
	for i, q := range given {
		if err := c.check(q, legs[0].kind == dense); err != nil {
			invalid[i] = sdk.Invalid(err)
			continue
		}
		at, queries = append(at, i), append(queries, c.query(q, legs[0].scores))
	}
	if search.NumCandidates > 0 {
		g, searching := errgroup.WithContext(ctx)
		for _, l := range legs {
			g.Go(func() error { return l.search(searching, queries) })
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		if len(legs) > 1 {
			if err := eachQuery(ctx, queries, func(ctx context.Context, q *query) error { return q.complete(ctx, legs) }); err != nil {
				return nil, err
			}
		}
	}
	hits := make([]sdk.Hits, len(given))
	for i, q := range queries {
		for _, l := range legs {
			if list := convert(q.hits[l.kind], !search.Texts); l.kind == dense {
				hits[at[i]].Dense = list
			} else {
				hits[at[i]].Lexical = list
			}
		}
	}
	if len(invalid) > 0 {
		return hits, invalid
	}
	return hits, nil
}

// legs returns the legs of a mode, the dense one first. A hybrid search skips a leg that an attached collection
// lacks.
func (c *Collection) legs(search sdk.Search) (legs []leg, err error) {
	byVector, byWords := search.Mode != sdk.ModeLexical, search.Mode != sdk.ModeDense
	switch {
	case !slices.Contains([]sdk.Mode{sdk.ModeHybrid, sdk.ModeDense, sdk.ModeLexical}, search.Mode):
		return nil, sdk.Invalid(fmt.Errorf("unknown search mode %q", search.Mode))
	case byVector && c.dimension == 0:
		return nil, sdk.Invalid(fmt.Errorf("a %s search needs vectors and collection %q has none: use mode %q", search.Mode, c.Name, sdk.ModeLexical))
	case byWords && c.Words == "" && c.own != nil:
		return nil, sdk.Invalid(fmt.Errorf("a %s search needs an analyzer and collection %q was built without: use mode %q", search.Mode, c.Name, sdk.ModeDense))
	case byWords && c.Words == "" && !byVector:
		return nil, sdk.Invalid(fmt.Errorf("no BM25 function fills a field of collection %q, so it cannot be searched by words: use mode %q", c.Name, sdk.ModeDense))
	}
	if byVector {
		legs = append(legs, c.leg(dense, search))
	}
	if byWords && c.Words != "" {
		legs = append(legs, c.leg(lexical, search))
	}
	return legs, nil
}

func (c *Collection) check(q sdk.Query, needsVector bool) error {
	switch x := q.Vector; {
	case len(x) == 0 && needsVector:
		return errors.New("the query has no vector")
	case len(x) > 0 && len(x) != c.dimension:
		return fmt.Errorf("the query's vector has %d dimensions and the collection's have %d", len(x), c.dimension)
	case !table.Finite(x):
		return errors.New("the query's vector has NaN or an infinity in it")
	}
	if q.Filter == nil {
		return nil
	}
	return q.Filter.Check()
}

// query prepares a query that check accepted.
func (c *Collection) query(given sdk.Query, s scores) *query {
	q := &query{text: given.Text, filter: given.Filter, condition: c.condition(given.Filter)}
	if c.own != nil && c.Words != "" {
		q.text = c.own.Words(given.Text)
	}
	if x := given.Vector; slices.ContainsFunc(x, func(v float32) bool { return v != 0 }) {
		q.vector = make([]float32, table.FieldWidth(len(x)))
		copy(q.vector, s.query(x))
	}
	return q
}

// complete adds the other leg's score to the hits of each leg.
func (q *query) complete(ctx context.Context, legs []leg) error {
	byKey := map[string]*hit{}
	for i, h := range q.hits[dense] {
		byKey[h.key] = &q.hits[dense][i]
	}
	for i, h := range q.hits[lexical] {
		if other := byKey[h.key]; other != nil {
			q.hits[lexical][i].scores[dense], other.scores[lexical] = other.scores[dense], h.scores[lexical]
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range legs {
		g.Go(func() error { return l.fill(ctx, q, q.hits[1-l.kind]) })
	}
	return g.Wait()
}

// convert converts hits for the SDK: with entries, or with ids alone, by which the SDK gets the entries.
func convert(from []hit, entries bool) []sdk.Hit {
	to := make([]sdk.Hit, len(from))
	for i := range from {
		h := &from[i]
		to[i] = sdk.Hit{ID: h.ID, Dense: h.scores[dense], Lexical: h.scores[lexical]}
		if entries {
			to[i].Entry = &h.Entry
		}
	}
	return to
}

// workers is how many calls of one leg run at a time.
const workers = 4

// eachQuery calls f with each query, several at a time.
func eachQuery(ctx context.Context, queries []*query, f func(context.Context, *query) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, q := range queries {
		g.Go(func() error { return f(ctx, q) })
	}
	return g.Wait()
}
