package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

// This file is what the searches in racflow's collections and in those of other programs have in common:
// queries, hits, and the legs, which read more rows until they have the best.

// Query is one query of a search, and what the legs found for it.
type Query struct {
	Text      string
	Vector    []float32 // as the server is asked; nil: none, or one without direction
	Terms     []Term    // of the text, where racflow scores it
	NoWords   bool      // the text has none that an entry could have
	Filter    *sdk.Filter
	Condition Condition // what becomes of the filter

	Dense, Lexical []Hit
}

// Hit is a row that a leg found, with the scores of both.
type Hit struct {
	*Found
	Dense, BM25 float32
}

// Leg is one leg of a search.
type Leg interface {
	// Start is how many rows are read of each query at first.
	Start() int
	// Find reads at most limit rows for each of some queries with one condition. It returns the hits of
	// each and whether no other row can be among the best.
	Find(ctx context.Context, queries []*Query, limit int) (hits [][]Hit, enough []bool, err error)
	// Exhausted is called for a query of which as many rows were read as a server returns.
	Exhausted(ctx context.Context, q *Query) error
}

// Modes returns the legs of a mode.
func Modes(m sdk.Mode) (dense, lexical bool, err error) {
	dense, lexical = m == sdk.ModeDense || m == sdk.ModeHybrid, m == sdk.ModeLexical || m == sdk.ModeHybrid
	if !dense && !lexical {
		err = sdk.Invalid(fmt.Errorf("unknown search mode %q", m))
	}
	return dense, lexical, err
}

// ParseQueries parses each of the given queries. It returns those that can be searched, their places, and an
// error for each of the others.
func ParseQueries(
	given []sdk.Query, dimension int, needsVector bool, parse func(sdk.Query) *Query,
) (queries []*Query, at []int, invalid sdk.RowErrors) {
	invalid = sdk.RowErrors{}
	for i, q := range given {
		if err := checkQuery(q, dimension, needsVector); err != nil {
			invalid[i] = sdk.Invalid(err)
			continue
		}
		at, queries = append(at, i), append(queries, parse(q))
	}
	return queries, at, invalid
}

func checkQuery(q sdk.Query, dimension int, needsVector bool) error {
	switch x := q.Vector; {
	case len(x) == 0 && needsVector:
		return errors.New("the query has no vector")
	case len(x) > 0 && len(x) != dimension:
		return fmt.Errorf("the query's vector has %d dimensions and the collection's have %d", len(x), dimension)
	case !Finite(x):
		return errors.New("the query's vector has NaN or an infinity in it")
	}
	if q.Filter == nil {
		return nil
	}
	return q.Filter.Check()
}

const (
	// workers is how many calls of one leg are on their way at a time.
	workers = 4
	// rowsPerCall is about how many rows a call asks for: a reply has to fit a message, with a vector or
	// metadata in each row, and the time that Milvus Lite 2 takes grows faster than their number.
	rowsPerCall = 4096
)

// SearchLegs finds the hits of all queries with the legs of a mode at once.
func SearchLegs(ctx context.Context, queries []*Query, mode sdk.Mode, leg func(lexical bool) Leg) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, lexical := range []bool{false, true} {
		if lexical && mode == sdk.ModeDense || !lexical && mode == sdk.ModeLexical {
			continue
		}
		g.Go(func() error { return searchLeg(ctx, queries, leg(lexical), lexical) })
	}
	return g.Wait()
}

// searchLeg sends queries with one condition together.
func searchLeg(ctx context.Context, queries []*Query, l Leg, lexical bool) error {
	groups := map[string][]*Query{}
	for _, q := range queries {
		if canMatch := lexical && !q.NoWords || !lexical && q.Vector != nil; canMatch && !q.Condition.None {
			groups[q.Condition.Expr] = append(groups[q.Condition.Expr], q)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, group := range groups {
		for part := range slices.Chunk(group, max(1, rowsPerCall/l.Start())) {
			g.Go(func() error { return find(ctx, part, l, lexical) })
		}
	}
	return g.Wait()
}

// find reads more rows as long as they are not enough.
func find(ctx context.Context, queries []*Query, l Leg, lexical bool) error {
	for limit := l.Start(); len(queries) > 0; limit = min(4*limit, MaxRows) {
		var unsure []*Query
		for part := range slices.Chunk(queries, max(1, rowsPerCall/limit)) {
			found, enough, err := l.Find(ctx, part, limit)
			if err != nil {
				return err
			}
			for i, q := range part {
				*q.Found(lexical) = found[i]
				if !enough[i] {
					unsure = append(unsure, q)
				}
			}
		}
		if queries = unsure; limit == MaxRows {
			return EachQuery(ctx, queries, l.Exhausted)
		}
	}
	return nil
}

// Found is where the hits of a leg are.
func (q *Query) Found(lexical bool) *[]Hit {
	if lexical {
		return &q.Lexical
	}
	return &q.Dense
}

// EachQuery calls f with each query, some at a time.
func EachQuery(ctx context.Context, queries []*Query, f func(context.Context, *Query) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, q := range queries {
		g.Go(func() error { return f(ctx, q) })
	}
	return g.Wait()
}

// Score is that of a leg.
func (h Hit) Score(lexical bool) float32 {
	if lexical {
		return h.BM25
	}
	return h.Dense
}

// Best sorts the hits of a leg and returns the first ones. Equal scores stand in the order of the ids.
func Best(hits []Hit, lexical bool, wanted int) []Hit {
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score(lexical), a.Score(lexical)), cmp.Compare(a.Entry.ID, b.Entry.ID))
	})
	return hits[:min(wanted, len(hits))]
}

// Share gives what both legs found both scores, and returns the hits of each that the other leg did not find.
func (q *Query) Share() (dense, lexical []*Hit) {
	byKey := map[string]*Hit{}
	for i := range q.Dense {
		byKey[q.Dense[i].Key] = &q.Dense[i]
	}
	for i := range q.Lexical {
		h := &q.Lexical[i]
		other := byKey[h.Key]
		if other == nil {
			lexical = append(lexical, h)
			continue
		}
		h.Dense, other.BM25 = other.Dense, h.BM25
		delete(byKey, h.Key)
	}
	for i := range q.Dense {
		if h := &q.Dense[i]; byKey[h.Key] != nil {
			dense = append(dense, h)
		}
	}
	return dense, lexical
}

// Hits are what the legs of a mode found, as the SDK takes it: with entries, or it gets them by their ids.
func (q *Query) Hits(mode sdk.Mode, entries bool) (hits sdk.Hits) {
	convert := func(from []Hit) []sdk.Hit {
		to := make([]sdk.Hit, len(from))
		for i, h := range from {
			to[i] = sdk.Hit{ID: h.Entry.ID, Dense: h.Dense, Lexical: h.BM25}
			if entries {
				to[i].Entry = &h.Entry
			}
		}
		return to
	}
	if mode != sdk.ModeLexical {
		hits.Dense = convert(q.Dense)
	}
	if mode != sdk.ModeDense {
		hits.Lexical = convert(q.Lexical)
	}
	return hits
}

// GetEntries returns entries by their ids, as many at a time as read is to be asked for: it returns those that
// there are, in any order.
func GetEntries(ids []string, most int, read func(ids []string) ([]sdk.Entry, error)) ([]sdk.Entry, error) {
	entries := make([]sdk.Entry, len(ids))
	at := map[string][]int{}
	var unique []string
	for i, id := range ids {
		if at[id] == nil {
			unique = append(unique, id)
		}
		at[id] = append(at[id], i)
	}
	for part := range slices.Chunk(unique, most) {
		found, err := read(part)
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			for _, i := range at[e.ID] {
				entries[i] = e
			}
		}
	}
	return entries, nil
}

// pageBytes is the size at which a page ends before its limit: it has to fit a message.
const pageBytes = 16 << 20

// ScanPage is a page of a scan. It has walk go through the rows that a filter of labels selects, or some more, in
// the order of their keys, until add returns false.
func ScanPage(
	scan sdk.Scan, walk func(filter *sdk.Filter, add func(key string, e sdk.Entry) (more bool)) error,
) (page sdk.Page, err error) {
	var filter *sdk.Filter
	if len(scan.Labels) > 0 {
		filter = &sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldLabel}
		for _, label := range scan.Labels {
			filter.Values = append(filter.Values, label)
		}
	}
	size := 0
	last := "" // key of the page
	err = walk(filter, func(key string, e sdk.Entry) bool {
		if filter != nil && !filter.Match(e.ID, e.Label, nil) {
			return true
		}
		if scan.Limit > 0 && len(page.Entries) == scan.Limit || size >= pageBytes {
			page.Next = last
			return false
		}
		last = key
		size += len(e.ID) + len(e.Text) + len(e.Label) + len(e.Context) + 4*len(e.Vector) + sizeOf(e.Meta)
		page.Entries = append(page.Entries, e)
		return true
	})
	return page, err
}

// sizeOf is about what metadata takes in a message.
func sizeOf(m sdk.Meta) (n int) {
	for key, v := range m {
		text, _ := v.(string)
		n += len(key) + len(text) + 16
	}
	return n
}
