package milvus

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// Get returns entries by their ids.
func (v *View) Get(ctx context.Context, ids []string) (entries []sdk.Entry, err error) {
	err = v.Read(ctx, func(snap *Snapshot) error {
		entries, err = table.GetEntries(ids, table.LookUp, func(ids []string) ([]sdk.Entry, error) {
			if snap.Record.Entries == 0 {
				return nil, nil
			}
			hashes := make([]int64, len(ids))
			for i, id := range ids {
				hashes[i] = table.IDHash(id)
			}
			expr := table.And(snap.Expression(), table.Numbers(table.FieldIDHash, hashes))
			rows, err := snap.Query(ctx, table.AsConfigured, expr, slices.Concat(table.FieldsScan, table.FieldsTexts)...)
			var found []sdk.Entry
			for _, r := range rows {
				if !snap.Dead[r.Sequence] {
					found = append(found, r.Entry)
				}
			}
			return found, err
		})
		return err
	})
	return entries, err
}

var position = regexp.MustCompile(`^([0-9a-z]{13})?$`)

// Scan returns the entries behind a position, the key of a row, in the order in which they were
// put. An entry that is put again between two pages appears again, at the end;
// none is missed.
func (v *View) Scan(ctx context.Context, scan sdk.Scan) (page sdk.Page, err error) {
	opened, err := v.Opened()
	if err != nil {
		return sdk.Page{}, err
	}
	if !position.MatchString(scan.After) {
		return sdk.Page{}, sdk.Invalid(fmt.Errorf("%q is not a position in a collection: use Next of the page before", scan.After))
	}
	fields := slices.Clone(table.FieldsScan)
	if scan.Texts {
		fields = append(fields, table.FieldsTexts...)
	}
	if scan.Vectors && opened.Schema.Dimension > 0 {
		fields = append(fields, table.FieldVector)
	}
	err = v.Read(ctx, func(snap *Snapshot) error {
		page, err = table.ScanPage(scan, func(filter *sdk.Filter, add func(string, sdk.Entry) bool) error {
			return walk(ctx, snap, filter, scan.After, fields, func(r table.Found) bool {
				if len(r.Entry.Vector) > 0 {
					r.Entry.Vector = r.Entry.Vector[:snap.Schema.Dimension]
				}
				return add(r.Key, r.Entry)
			})
		})
		return err
	})
	return page, err
}

// walk calls f with the rows of the entries behind a key that a filter selects, or some more, in the order of
// their numbers, until it returns false.
func walk(ctx context.Context, s *Snapshot, filter *sdk.Filter, after string, fields []string, f func(table.Found) bool) error {
	condition := table.ConditionOf(filter)
	if condition.None || s.Record.Entries == 0 {
		return nil
	}
	return s.Walk(ctx, table.AsConfigured, after, table.And(s.Expression(), condition.Expr), fields, func(r table.Found) bool {
		return s.Dead[r.Sequence] || f(r)
	})
}
