package search

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/racflow/racflow/plugins/store/milvus/internal/bm25"
	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
	"github.com/racflow/racflow/plugins/store/milvus/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
	"github.com/racflow/racflow/sdk"
)

// pageBytes is the size at which a page ends before its limit: it has to fit a
// message.
const pageBytes = 16 << 20

// Get returns entries by their ids.
func (s *Searcher) Get(ctx context.Context, ids []string) ([]sdk.Entry, error) {
	entries := make([]sdk.Entry, len(ids))
	err := s.View.Read(ctx, func(snap *snapshot.Snapshot) error {
		clear(entries)
		if snap.Record.Entries == 0 {
			return nil
		}
		at := map[string][]int{}
		var hashes []int64
		for i, id := range ids {
			if at[id] == nil {
				hashes = append(hashes, row.IDHash(id))
			}
			at[id] = append(at[id], i)
		}
		for part := range slices.Chunk(hashes, table.LookUp) {
			expr := expression.And(snap.Expression(), expression.Numbers(row.FieldIDHash, part))
			rows, err := snap.Query(ctx, table.AsConfigured, expr, slices.Concat(row.FieldsScan, row.FieldsTexts)...)
			if err != nil {
				return err
			}
			for _, r := range rows {
				if snap.IsDead(r.Sequence) {
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
func (s *Searcher) Scan(ctx context.Context, scan sdk.Scan) (sdk.Page, error) {
	opened, err := s.View.Opened()
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
	fields := slices.Clone(row.FieldsScan)
	if scan.Texts {
		fields = append(fields, row.FieldsTexts...)
	}
	if scan.Vectors && opened.Schema.Dimension > 0 {
		fields = append(fields, row.FieldVector)
	}
	var page sdk.Page
	err = s.View.Read(ctx, func(snap *snapshot.Snapshot) error {
		page = sdk.Page{}
		size := 0
		return walk(ctx, snap, filter, from, fields, func(r row.Found) bool {
			if scan.Limit > 0 && len(page.Entries) == scan.Limit || size >= pageBytes {
				page.Next = strconv.FormatInt(r.Position, 36)
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
// their positions, until it returns false.
func walk(ctx context.Context, s *snapshot.Snapshot, filter *sdk.Filter, from int64, fields []string, f func(row.Found) bool) error {
	condition := expression.Of(filter)
	if condition.None || s.Record.Entries == 0 {
		return nil
	}
	err := s.Walk(ctx, table.AsConfigured, from, s.Record.Next, expression.And(s.Expression(), condition.Expr), fields, func(r row.Found) error {
		if !s.IsDead(r.Sequence) && filter.Match(r.Entry.ID, r.Entry.Label, r.Entry.Meta) && !f(r) {
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
	fields := slices.Concat(row.FieldsScan, row.FieldsTexts)
	if !l.lexical {
		fields = append(fields, row.FieldVector)
	}
	var hits []hit
	err := walk(ctx, l.Snapshot, q.filter, 0, fields, func(r row.Found) bool {
		for i, x := range q.vector[:min(len(q.vector), len(r.Entry.Vector))] {
			r.Score += x * r.Entry.Vector[i]
		}
		r.Entry.Vector = nil
		if l.bm25 {
			r.Counts = bm25.CountWords(*l.Analyzer, r.Entry.Context, r.Entry.Text)
		}
		if !l.texts {
			r.Entry.Text, r.Entry.Context = "", ""
		}
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
