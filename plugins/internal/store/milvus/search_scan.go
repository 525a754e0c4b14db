package milvus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// leg is one leg of a search: the dense one unless it is lexical.
type leg struct {
	*Snapshot
	wanted  int // hits of each query
	formula table.Formula
	bm25    bool // hits get a BM25 score
	lexical bool
}

// rowsPerCall is about how many rows a call asks for: the time that Milvus Lite 2 takes
// grows faster than their number.
const rowsPerCall = 4096

func (l leg) field() string {
	if l.lexical {
		return table.FieldWords
	}
	return table.FieldVector
}

// matches reports whether anything can match a query.
func (l leg) matches(q *query) bool {
	if l.lexical {
		return len(q.terms) > 0
	}
	return q.vector != nil
}

// vectors are what a server is asked with.
func (l leg) vectors(queries []*query) *commonpb.PlaceholderValue {
	if !l.lexical {
		vectors := make([][]float32, len(queries))
		for i, q := range queries {
			vectors[i] = q.vector
		}
		return table.Placeholders(schemapb.DataType_FloatVector, vectors)
	}
	sparse := &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType_SparseFloatVector}
	for _, q := range queries {
		sparse.Values = append(sparse.Values, table.BM25Query(q.terms).Serialize())
	}
	return sparse
}

// errorBound is the factor by which a score of today's can be higher than the
// server's. It follows from the formula: with the average length a in place of a0,
// the part of a row's score that a word gives grows by a factor of at most a/a0,
// and not at all where a is smaller.
func (l leg) errorBound() float32 {
	if !l.lexical || l.Record.Lowest <= 0 {
		return 1
	}
	return float32(max(1, l.Record.Average()/l.Record.Lowest))
}

// accept scores a row unless it is dead or the filter does not select it.
func (l leg) accept(q *query, r *table.Found) (hit, bool) {
	if l.Dead[r.Sequence] || !q.filter.Match(r.Entry.ID, r.Entry.Label, r.Entry.Meta) {
		return hit{}, false
	}
	h := hit{Found: r, dense: r.Score, bm25: sdk.Unscored}
	if l.bm25 {
		h.bm25 = l.formula.Score(q.terms, r.Counts)
	}
	if l.lexical {
		h.dense = sdk.Unscored
	}
	return h, !l.lexical || h.bm25 > 0
}

func (l leg) rank(h hit) float32 {
	if l.lexical {
		return h.bm25
	}
	return h.dense
}

// best sorts hits and returns the first ones. Equal scores stand in the order of
// the ids.
func (l leg) best(hits []hit) []hit {
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(l.rank(b), l.rank(a)), cmp.Compare(a.Entry.ID, b.Entry.ID))
	})
	return hits[:min(l.wanted, len(hits))]
}

func (l leg) found(q *query, hits []hit) {
	if l.lexical {
		q.lexical = hits
	} else {
		q.dense = hits
	}
}

// search finds the best entries of all queries. Those with one filter are sent
// together.
func (l leg) search(ctx context.Context, queries []*query) error {
	groups := map[string][]*query{}
	for _, q := range queries {
		if !q.condition.None && l.matches(q) {
			groups[q.condition.Expr] = append(groups[q.condition.Expr], q)
		}
	}
	var parts [][]*query
	for _, group := range groups {
		parts = slices.AppendSeq(parts, slices.Chunk(group, max(1, rowsPerCall/l.firstLimit())))
	}
	if len(parts) == 1 { // most often, and a new goroutine's stack has to grow first
		return l.find(ctx, parts[0])
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, part := range parts {
		g.Go(func() error { return l.find(ctx, part) })
	}
	return g.Wait()
}

// pageBytes is the size at which a page ends before its limit: it has to fit a
// message.
const pageBytes = 16 << 20

// Get returns entries by their ids.
func (v *View) Get(ctx context.Context, ids []string) ([]sdk.Entry, error) {
	entries := make([]sdk.Entry, len(ids))
	err := v.Read(ctx, func(snap *Snapshot) error {
		clear(entries)
		if snap.Record.Entries == 0 {
			return nil
		}
		at := map[string][]int{}
		var hashes []int64
		for i, id := range ids {
			if at[id] == nil {
				hashes = append(hashes, table.IDHash(id))
			}
			at[id] = append(at[id], i)
		}
		for part := range slices.Chunk(hashes, table.LookUp) {
			expr := table.And(snap.Expression(), table.Numbers(table.FieldIDHash, part))
			rows, err := snap.Query(ctx, table.AsConfigured, expr, slices.Concat(table.FieldsScan, table.FieldsTexts)...)
			if err != nil {
				return err
			}
			for _, r := range rows {
				if snap.Dead[r.Sequence] {
					continue
				}
				for _, i := range at[r.Entry.ID] {
					entries[i] = r.Entry
				}
			}
		}
		return nil
	})
	return entries, err
}

// Scan returns the entries from a position on, in the order in which they were
// put. An entry that is put again between two pages appears again, at the end;
// none is missed.
func (v *View) Scan(ctx context.Context, scan sdk.Scan) (sdk.Page, error) {
	opened, err := v.Opened()
	if err != nil {
		return sdk.Page{}, err
	}
	from := int64(0)
	if scan.After != "" {
		if from, err = strconv.ParseInt(scan.After, 36, 64); err != nil || from < 0 {
			return sdk.Page{}, sdk.Invalid(fmt.Errorf("%q is not a position in a collection: use Next of the page before", scan.After))
		}
	}
	var filter *sdk.Filter
	if len(scan.Labels) > 0 {
		filter = &sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldLabel}
		for _, label := range scan.Labels {
			filter.Values = append(filter.Values, label)
		}
	}
	fields := slices.Clone(table.FieldsScan)
	if scan.Texts {
		fields = append(fields, table.FieldsTexts...)
	}
	if scan.Vectors && opened.Schema.Dimension > 0 {
		fields = append(fields, table.FieldVector)
	}
	var page sdk.Page
	err = v.Read(ctx, func(snap *Snapshot) error {
		page = sdk.Page{}
		size := 0
		return walk(ctx, snap, filter, from, fields, func(r table.Found) bool {
			if scan.Limit > 0 && len(page.Entries) == scan.Limit || size >= pageBytes {
				page.Next = strconv.FormatInt(r.Sequence, 36)
				return false
			}
			e := r.Entry
			if len(e.Vector) > 0 {
				e.Vector = e.Vector[:snap.Schema.Dimension]
			}
			size += len(e.ID) + len(e.Text) + len(e.Label) + len(e.Context) + 4*len(e.Vector)
			page.Entries = append(page.Entries, e)
			return true
		})
	})
	return page, err
}

// errEnough ends a walk.
type errEnough struct{}

func (errEnough) Error() string { return "enough" }

// walk calls f with the rows of the entries that a filter selects, in the order of
// their numbers, until it returns false.
func walk(ctx context.Context, s *Snapshot, filter *sdk.Filter, from int64, fields []string, f func(table.Found) bool) error {
	condition := table.ConditionOf(filter)
	if condition.None || s.Record.Entries == 0 {
		return nil
	}
	err := s.Walk(ctx, table.AsConfigured, from, s.Record.Next, table.And(s.Expression(), condition.Expr), fields, func(r table.Found) error {
		if !s.Dead[r.Sequence] && filter.Match(r.Entry.ID, r.Entry.Label, r.Entry.Meta) && !f(r) {
			return errEnough{}
		}
		return nil
	})
	if err == (errEnough{}) {
		return nil
	}
	return err
}

// readAll searches by reading every entry that the filter selects, for where too
// much of what a server finds falls away.
func (l leg) readAll(ctx context.Context, q *query) error {
	fields := slices.Concat(table.FieldsScan, table.FieldsTexts)
	if !l.lexical {
		fields = append(fields, table.FieldVector)
	}
	var hits []hit
	err := walk(ctx, l.Snapshot, q.filter, 0, fields, func(r table.Found) bool {
		for i, x := range q.vector[:min(len(q.vector), len(r.Entry.Vector))] {
			r.Score += x * r.Entry.Vector[i]
		}
		r.Entry.Vector = nil
		if l.bm25 {
			r.Counts = table.CountWords(*l.Analyzer, r.Entry.Context, r.Entry.Text)
		}
		r.Entry.Text, r.Entry.Context = "", ""
		if h, ok := l.accept(q, &r); ok {
			hits = append(hits, h)
		}
		if len(hits) > 4*l.wanted+table.MaxRows {
			hits = l.best(hits)
		}
		return true
	})
	l.found(q, l.best(hits))
	return err
}
