package milvus

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// get returns entries by their ids.
func (w *writer) get(ctx context.Context, ids []string) ([]sdk.Entry, error) {
	k, err := w.opened()
	if err != nil {
		return nil, err
	}
	return table.GetEntries(ids, table.LookUp, func(ids []string) ([]sdk.Entry, error) {
		if !k.onServer {
			return nil, nil
		}
		keys := make([]string, len(ids))
		for i, id := range ids {
			keys[i] = table.RowKey(id)
		}
		rows, err := k.Query(ctx, table.AsConfigured, table.Keys(keys), slices.Concat(table.FieldsScan, table.FieldsTexts)...)
		found := make([]sdk.Entry, len(rows))
		for i, r := range rows {
			found[i] = r.Entry
		}
		return found, err
	})
}

var position = regexp.MustCompile(`^([0-9a-f]{32})?$`)

// scan returns the entries behind a position, the key of a row, in the order of the keys.
func (w *writer) scan(ctx context.Context, scan sdk.Scan) (page sdk.Page, err error) {
	k, err := w.opened()
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
	if scan.Vectors && k.Schema.Dimension > 0 {
		fields = append(fields, table.FieldVector)
	}
	return table.ScanPage(scan, func(filter *sdk.Filter, add func(string, sdk.Entry) bool) error {
		return walk(ctx, k, filter, scan.After, fields, func(r table.Found) bool {
			if len(r.Entry.Vector) > 0 {
				r.Entry.Vector = r.Entry.Vector[:k.Schema.Dimension]
			}
			return add(r.Key, r.Entry)
		})
	})
}

// walk calls f with the rows of the entries behind a key that a filter selects, or some more, in the order of
// their keys, until it returns false.
func walk(ctx context.Context, k *known, filter *sdk.Filter, after string, fields []string, f func(table.Found) bool) error {
	condition := table.ConditionOf(filter)
	if condition.None || !k.onServer {
		return nil
	}
	return k.Walk(ctx, table.AsConfigured, after, condition.Expr, fields, f)
}
