package attached

import (
	"context"
	"fmt"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// rows are the rows of the collection.
func (c *Collection) rows() table.Rows {
	return table.Rows{
		Collection: c.Name, Partitions: c.arguments.Partitions, Key: c.Key.GetName(), WholeKeys: Place{Field: c.Key}.Is(Whole...), Default: true,
		Call: func(ctx context.Context, what string, do func(context.Context, table.Reads) error) error {
			return c.explainError(c.call(ctx, what, func(ctx context.Context, s Service) error { return do(ctx, s) }))
		},
	}
}

// idsPerCall is how many entries are read by their ids at a time.
const idsPerCall = 250

// Get returns entries by their ids. One that no expression can name is not found.
func (c *Collection) Get(ctx context.Context, ids []string) ([]sdk.Entry, error) {
	return table.GetEntries(ids, idsPerCall, func(ids []string) ([]sdk.Entry, error) {
		expr, n := table.OneOf(c.ID.Field.GetName(), c.ID.Is(Whole...), ids)
		if n == 0 {
			return nil, nil
		}
		rows, _, err := c.rows().Query(ctx, expr, c.Outputs(true, true, false), table.MaxRows)
		entries := make([]sdk.Entry, len(rows))
		for i, r := range rows {
			entries[i] = c.Entry(r, true)
		}
		return entries, err
	})
}

// sample reads the first rows, with the JSON fields, whose members only rows show.
func (c *Collection) sample(ctx context.Context) ([]*table.ReplyRow, error) {
	names := []string{c.Key.GetName()}
	for _, f := range c.Fields {
		if f.GetDataType() == schemapb.DataType_JSON {
			names = append(names, f.GetName())
		}
	}
	if len(names) == 1 {
		return nil, nil
	}
	rows, _, err := c.rows().Query(ctx, "", names, sampleRows)
	return rows, err
}

// Scan returns the entries in the order of their keys. A position is the key of a row, as text.
func (c *Collection) Scan(ctx context.Context, scan sdk.Scan) (sdk.Page, error) {
	var after any
	if scan.After != "" {
		after = scan.After
		if (Place{Field: c.Key}).Is(Whole...) {
			number, ok := table.WholeNumber(scan.After)
			if !ok {
				return sdk.Page{}, sdk.Invalid(fmt.Errorf("%.80q is not a position in collection %q", scan.After, c.Name))
			}
			after = number
		}
	}
	return table.ScanPage(scan, func(filter *sdk.Filter, add func(string, sdk.Entry) bool) error {
		condition := c.Condition(filter)
		if condition.None {
			return nil
		}
		fields := c.Outputs(scan.Texts, false, scan.Vectors)
		return c.rows().Walk(ctx, after, condition.Expr, fields, scan.Vectors, func(r *table.ReplyRow) (bool, error) {
			if c.IDOf(r) == "" {
				return true, nil
			}
			e := c.Entry(r, scan.Texts)
			if scan.Vectors {
				e.Vector = c.vectorOf(r)
			}
			return add(c.KeyOf(r), e), nil
		})
	})
}
