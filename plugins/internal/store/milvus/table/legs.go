package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

// This file is what the searches in racflow's collections and in those of other programs have in common:
// queries, hits, and the legs, which read more rows until they have the best.

// Query is one query of a search, and what the legs found for it.
type Query struct {
	Text      string    // as the server is asked; empty: it has no words
	Vector    []float32 // as the server is asked; nil: none, or one without direction
	Filter    *sdk.Filter
	Condition Condition // what becomes of the filter

	Dense, Lexical []Hit
}

// Hit is a row that a leg found, with the scores of both.
type Hit struct {
	*Found
	Dense, BM25 float32
}

// Leg is one leg of a search: the lexical one, if the metric is BM25.
type Leg struct {
	Rows
	Field, Metric string
	Type          schemapb.DataType // of the field
	Index         string            // of the field, and the parameters of a search in it
	Params        map[string]string
	Wordless      bool // of a lexical leg: no row has a word, so it finds none
	Wanted        int  // hits of each query
	First         int  // rows that are read of each query at first
	// Ties says that entries which tie with the last one of a list count by their ids. Only in a list of more than a
	// hundred the server may choose: of short texts hundreds may.
	Ties bool
	// Outputs are the fields to read, with those that filters need.
	Outputs func(filtered bool) []string
	// Score makes that of a server the leg's, and Hit makes a hit of a row; false: it is no entry, or the filter does not select it.
	Score func(float32) float32
	Hit   func(q *Query, r Scored) (h Hit, ok bool)
	// Exhausted is called for a query of which as many rows were read as a server returns.
	Exhausted func(ctx context.Context, q *Query) error
}

// The metrics that are known.
const (
	MetricCosine = "COSINE"
	MetricIP     = "IP"
	MetricL2     = "L2"
	MetricBM25   = "BM25"
)

// Lexical reports whether the leg searches by words.
func (l Leg) Lexical() bool { return l.Metric == MetricBM25 }

// Modes returns the legs of a mode.
func Modes(m sdk.Mode) (dense, lexical bool, err error) {
	dense, lexical = m == sdk.ModeDense || m == sdk.ModeHybrid, m == sdk.ModeLexical || m == sdk.ModeHybrid
	if !dense && !lexical {
		err = sdk.Invalid(fmt.Errorf("unknown search mode %q", m))
	}
	return dense, lexical, err
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

// Find searches with the legs of a mode at once, and gives all hits of a hybrid search both scores. parse makes a
// query of one that was checked.
func Find(
	ctx context.Context, search sdk.Search, given []sdk.Query, dimension int, parse func(sdk.Query) *Query, legs ...Leg,
) ([]sdk.Hits, error) {
	hasDense := slices.ContainsFunc(legs, func(l Leg) bool { return !l.Lexical() })
	var queries []*Query
	var at []int
	invalid := sdk.RowErrors{}
	for i, q := range given {
		if err := checkQuery(q, dimension, hasDense); err != nil {
			invalid[i] = sdk.Invalid(err)
			continue
		}
		at, queries = append(at, i), append(queries, parse(q))
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
			if err := eachQuery(ctx, queries, func(ctx context.Context, q *Query) error { return q.complete(ctx, legs) }); err != nil {
				return nil, err
			}
		}
	}
	hits := make([]sdk.Hits, len(given))
	for i, q := range queries {
		hits[at[i]] = q.hits(search.Mode, !search.Texts)
	}
	if len(invalid) > 0 {
		return hits, invalid
	}
	return hits, nil
}

// search sends queries with one condition together.
func (l Leg) search(ctx context.Context, queries []*Query) error {
	groups := map[string][]*Query{}
	for _, q := range queries {
		if l.canMatch(q) && !q.Condition.None {
			groups[q.Condition.Expr] = append(groups[q.Condition.Expr], q)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, group := range groups {
		for part := range slices.Chunk(group, max(1, rowsPerCall/max(1, l.First))) {
			g.Go(func() error { return l.find(ctx, part) })
		}
	}
	return g.Wait()
}

// canMatch reports whether a query has what the leg searches by.
func (l Leg) canMatch(q *Query) bool {
	if l.Lexical() {
		return q.Text != ""
	}
	return q.Vector != nil
}

// find reads more rows as long as they are not enough.
func (l Leg) find(ctx context.Context, queries []*Query) error {
	for limit := min(l.First, MaxRows); len(queries) > 0; limit = min(4*limit, MaxRows) {
		var unsure []*Query
		for part := range slices.Chunk(queries, max(1, rowsPerCall/limit)) {
			lists, err := l.ask(ctx, part, part[0].Condition.Expr, limit)
			if err != nil {
				return err
			}
			for i, q := range part {
				if !l.settle(q, lists[i], limit) {
					unsure = append(unsure, q)
				}
			}
		}
		if queries = unsure; limit == MaxRows {
			return eachQuery(ctx, queries, l.Exhausted)
		}
	}
	return nil
}

// ask has the server search.
func (l Leg) ask(ctx context.Context, queries []*Query, expr string, limit int) ([][]Scored, error) {
	// A filter that the server cannot check gives the same expression as none.
	filtered := slices.ContainsFunc(queries, func(q *Query) bool { return q.Filter != nil })
	r := SearchRequest{Field: l.Field, Metric: l.Metric, Expr: expr, Fields: l.Outputs(filtered), Limit: limit, Params: map[string]any{}}
	if l.Lexical() {
		r.Queries = &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType_VarChar}
		for _, q := range queries {
			// Milvus Lite 2 ends at a text that is not UTF-8.
			r.Queries.Values = append(r.Queries.Values, []byte(strings.ToValidUTF8(q.Text, "\uFFFD")))
		}
		if l.Wordless {
			return make([][]Scored, len(queries)), nil
		}
		lists, err := l.Search(ctx, r)
		if noWords.is(err) {
			return make([][]Scored, len(queries)), nil
		}
		return lists, err
	}
	r.Params = searchParams(l.Index, l.Params, limit)
	r.Queries = Placeholders(l.Type, each(queries, func(q *Query) []float32 { return q.Vector }))
	return l.Search(ctx, r)
}

const (
	// tolerance is how far a server's sums may be from each other by rounding.
	tolerance = 1e-5
	// longList is how long a list is in which the server may choose among ties.
	longList = 100
)

// settle keeps the best of what the server returned, and reports whether no row that it did not return can belong
// to them.
func (l Leg) settle(q *Query, rows []Scored, limit int) bool {
	seen := map[string]bool{} // of several rows with one id the best counts
	hits := make([]Hit, 0, len(rows))
	for _, r := range rows {
		if h, ok := l.Hit(q, r); ok && !seen[h.Entry.ID] {
			seen[h.Entry.ID] = true
			hits = append(hits, h)
		}
	}
	hits = Best(hits, l.Lexical(), l.Wanted)
	*q.Found(l.Lexical()) = hits
	switch {
	case len(rows) < limit:
		return true // there are no others
	case len(hits) < l.Wanted:
		return false
	case !l.Ties || l.Wanted > longList:
		return true
	}
	lowest := float32(math.Inf(1))
	for _, r := range rows {
		lowest = min(lowest, l.Score(r.Score))
	}
	return hits[l.Wanted-1].Score(l.Lexical()) > lowest+tolerance*max(1, lowest)
}

// complete gives the hits of each leg the score of the other one.
func (q *Query) complete(ctx context.Context, legs []Leg) error {
	dense, lexical := q.share()
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range legs {
		lacking := lexical
		if l.Lexical() {
			lacking = dense
		}
		g.Go(func() error { return l.Fill(ctx, q, lacking) })
	}
	return g.Wait()
}

// Fill has the server score hits that lack the leg's score. By words it finds nothing where an entry has none of
// them: then the score is 0. A row whose key no expression can name, or that an inexact index misses, keeps none.
// Asking for many rows by their keys costs a fraction of having their vectors sent.
func (l Leg) Fill(ctx context.Context, q *Query, hits []*Hit) error {
	hits = slices.DeleteFunc(slices.Clone(hits), func(h *Hit) bool {
		_, named := OneOf(l.Key, l.WholeKeys, []string{h.Key})
		score := h.Score(l.Lexical())
		return named == 0 || score == score
	})
	keys := each(hits, func(h *Hit) string { return h.Key })
	slices.Sort(keys) // neighbours are close to each other on the server too
	expr, n := OneOf(l.Key, l.WholeKeys, keys)
	found := map[string]Hit{}
	if n > 0 && l.canMatch(q) {
		lists, err := l.ask(ctx, []*Query{q}, expr, n)
		if err != nil {
			return err
		}
		for _, r := range lists[0] {
			if h, ok := l.Hit(q, r); ok {
				found[h.Key] = h
			}
		}
	}
	for _, h := range hits {
		if got, ok := found[h.Key]; l.Lexical() {
			h.BM25 = got.BM25
		} else if ok {
			h.Dense = got.Dense
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

// eachQuery calls f with each query, some at a time.
func eachQuery(ctx context.Context, queries []*Query, f func(context.Context, *Query) error) error {
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

// share gives what both legs found both scores, and returns the hits of each that the other leg did not find.
func (q *Query) share() (dense, lexical []*Hit) {
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

// hits are what the legs of a mode found, as the SDK takes it: with entries, or it gets them by their ids.
func (q *Query) hits(mode sdk.Mode, entries bool) (hits sdk.Hits) {
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
