package attached

import (
	"context"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
	"github.com/racflow/racflow/plugins/store/milvus/internal/mapping"
	"github.com/racflow/racflow/sdk"
)

// pageBytes is the size at which a page ends before its limit.
const pageBytes = 16 << 20

// first reads the first rows, with all that this package understands, and how many bytes
// they took.
func (c *Collection) first(ctx context.Context) ([]*column.Row, int, error) {
	names := []string{c.Key.GetName(), c.Vector.GetName()}
	for _, f := range c.Fields {
		if p := (mapping.Place{Field: f}); f != c.Key && (p.Is(mapping.Scalars...) || p.Is(schemapb.DataType_JSON)) {
			names = append(names, f.GetName())
		}
	}
	return c.query(ctx, "", names, sampleRows)
}

// Scan returns the entries in the order of their keys.
func (c *Collection) Scan(ctx context.Context, scan sdk.Scan) (sdk.Page, error) {
	var filter *sdk.Filter
	if len(scan.Labels) > 0 {
		filter = &sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldLabel}
		for _, label := range scan.Labels {
			filter.Values = append(filter.Values, label)
		}
	}
	condition := c.Condition(filter)
	if condition.None {
		return sdk.Page{}, nil
	}
	var page sdk.Page
	var last string // key of the page
	size := 0
	err := c.walk(ctx, scan.After, condition, c.Outputs(scan.Texts, false, scan.Vectors), func(r *column.Row) bool {
		if filter != nil && !filter.Match("", c.LabelOf(r), nil) {
			return true
		}
		if scan.Limit > 0 && len(page.Entries) == scan.Limit || size >= pageBytes {
			page.Next = last
			return false
		}
		e := c.Entry(r, scan.Texts)
		if scan.Vectors {
			e.Vector, _ = r.Value(c.Vector.GetName()).([]float32)
		}
		last = c.KeyOf(r)
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
