package entries

import (
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// Get returns entries by their ids. It does not find an entry whose id no expression can contain.
func (c *Collection) Get(ctx context.Context, ids []string) ([]sdk.Entry, error) {
	entries := make([]sdk.Entry, len(ids))
	at := map[string][]int{}
	var unique []string
	for i, id := range ids {
		if at[id] == nil {
			unique = append(unique, id)
		}
		at[id] = append(at[id], i)
	}
	for part := range slices.Chunk(unique, table.LookUp) {
		field, names := c.ID.Field, part
		if c.own != nil {
			field, names = c.Key, slices.Clone(part)
			for i, id := range part {
				names[i] = table.RowKey(id)
			}
		}
		expr, n := table.OneOf(field.GetName(), Place{Field: field}.Is(whole...), names)
		if n == 0 {
			continue
		}
		rows, _, err := c.rows().Query(ctx, expr, c.outputs(true, true, false), table.MaxRows)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			e := c.entry(r, true)
			for _, i := range at[e.ID] {
				entries[i] = e
			}
		}
	}
	return entries, nil
}

// pageBytes is the size at which a page ends early: it must fit into a message.
const pageBytes = 16 << 20

// Scan returns the entries in the order of their keys. A position is the key of a row, as text.
func (c *Collection) Scan(ctx context.Context, scan sdk.Scan) (page sdk.Page, err error) {
	after, err := c.position(scan.After)
	if err != nil {
		return sdk.Page{}, err
	}
	var filter *sdk.Filter
	if len(scan.Labels) > 0 {
		filter = &sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldLabel}
		for _, label := range scan.Labels {
			filter.Values = append(filter.Values, label)
		}
	}
	condition := c.condition(filter)
	if condition.None {
		return sdk.Page{}, nil
	}
	size, last := 0, "" // the size of the page in bytes, and its last key
	fields := c.outputs(scan.Texts, false, scan.Vectors)
	err = c.rows().Walk(ctx, after, condition.Expr, fields, scan.Vectors, func(r *table.ReplyRow) (bool, error) {
		e := c.entry(r, scan.Texts)
		if e.ID == "" || filter != nil && !filter.Match(e.ID, e.Label, nil) {
			return true, nil
		}
		if scan.Limit > 0 && len(page.Entries) == scan.Limit || size >= pageBytes {
			page.Next = last
			return false, nil
		}
		if scan.Vectors {
			e.Vector = c.vectorOf(r)
		}
		last = c.keyOf(r)
		size += len(e.ID) + len(e.Text) + len(e.Label) + len(e.Context) + 4*len(e.Vector) + sizeOf(e.Meta)
		page.Entries = append(page.Entries, e)
		return true, nil
	})
	return page, err
}

// position parses a position from Scan, the key of a row; nil: the beginning.
func (c *Collection) position(after string) (any, error) {
	switch number, ok := table.WholeNumber(after); {
	case after == "":
		return nil, nil
	case !(Place{Field: c.Key}).Is(whole...):
		return after, nil
	case ok:
		return number, nil
	}
	return nil, sdk.Invalid(fmt.Errorf("%.80q is not a position in collection %q: use Next of the page before", after, c.Name))
}

// sizeOf returns about how many bytes metadata takes in a message.
func sizeOf(m sdk.Meta) (n int) {
	for key, v := range m {
		text, _ := v.(string)
		n += len(key) + len(text) + 16
	}
	return n
}
