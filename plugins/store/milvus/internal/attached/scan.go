package attached

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/sdk"
)

const (
	// pageBytes is the size at which a page ends before its limit.
	pageBytes = 16 << 20
	// windowBytes is about how much is read at a time.
	windowBytes = 4 << 20
	// Rows that are read at a time: Milvus Lite 2 takes time for vectors that grows
	// with the square of the rows.
	firstWindow, vectorWindow, plainWindow = 64, 250, 1000
)

// first reads the first rows, with all that this package understands.
func (c *Collection) first(ctx context.Context) ([]*record, error) {
	names := []string{c.key.GetName(), c.vector.GetName()}
	for _, f := range c.fields {
		if p := (place{field: f}); f != c.key && (p.is(scalars...) || p.is(schemapb.DataType_JSON)) {
			names = append(names, f.GetName())
		}
	}
	rows, _, err := c.query(ctx, "", names, sampleRows)
	return rows, err
}

// Get returns entries by their ids.
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
	set := func(r *record) {
		for _, i := range at[c.idOf(r)] {
			entries[i] = c.entry(r, true)
		}
	}
	fields := c.outputs(true, true, false)
	for part := range slices.Chunk(unique, plainWindow/4) {
		expr, n := oneOf(c.id, part)
		if n == 0 {
			continue
		}
		found, _, err := c.query(ctx, expr, fields, maxRows)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			set(r)
		}
	}
	// Ids that no literal can name are looked for among keys that begin alike, or
	// among all rows.
	for _, id := range unique {
		if _, ok := expression.Quote(id); ok || entries[at[id][0]].ID != "" {
			continue
		}
		from, isKey := "", c.id.field == c.key
		if isKey {
			from = beginning(id)
		}
		err := c.walk(ctx, from, all, fields, func(r *record) bool {
			set(r)
			return entries[at[id][0]].ID == "" && !(isKey && c.keyOf(r) > id)
		})
		if err != nil {
			return nil, err
		}
	}
	return entries, nil
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
	condition := c.condition(filter)
	if condition.None {
		return sdk.Page{}, nil
	}
	var page sdk.Page
	var last string // key of the page
	size := 0
	err := c.walk(ctx, scan.After, condition, c.outputs(scan.Texts, false, scan.Vectors), func(r *record) bool {
		if filter != nil && !filter.Match("", c.labelOf(r), nil) {
			return true
		}
		if scan.Limit > 0 && len(page.Entries) == scan.Limit || size >= pageBytes {
			page.Next = last
			return false
		}
		e := c.entry(r, scan.Texts)
		if scan.Vectors {
			e.Vector, _ = r.value(c.vector.GetName()).([]float32)
		}
		last = c.keyOf(r)
		size += len(e.ID) + len(e.Text) + len(e.Label) + len(e.Context) + 4*len(e.Vector)
		page.Entries = append(page.Entries, e)
		return true
	})
	return page, err
}

// walk calls f with the rows after a key, in the order of the keys, until it returns
// false.
func (c *Collection) walk(ctx context.Context, after string, condition expression.Condition, fields []string, f func(*record) bool) error {
	most := plainWindow
	if slices.Contains(fields, c.vector.GetName()) {
		most = vectorWindow
	}
	window := min(firstWindow, most)
	for {
		from, err := c.after(after)
		if err != nil {
			return err
		}
		found, size, err := c.query(ctx, expression.And(from, condition.Expr), fields, window)
		if err != nil {
			return err
		}
		last := after
		for _, r := range found {
			key := c.keyOf(r)
			if last != "" && !c.precedes(last, key) {
				if last == after || last == key {
					continue // keys that begin like the last one; a key that is there twice
				}
				return fmt.Errorf("the server does not return the rows of collection %q in the order of their keys", c.name)
			}
			if last = key; c.idOf(r) != "" && !f(r) {
				return nil
			}
		}
		switch {
		case len(found) < window:
			return nil
		case last == after && window == maxRows:
			return fmt.Errorf("collection %q has more than %d keys that begin like %.40q, with characters that no expression of the server can hold", c.name, maxRows, after)
		case last == after:
			window = min(4*window, maxRows)
		default:
			window = max(1, min(most, windowBytes/max(1, size/len(found))))
		}
		after = last
	}
}

// precedes is the order of the keys on the server.
func (c *Collection) precedes(a, b string) bool {
	x, isNumber := wholeNumber(a)
	y, both := wholeNumber(b)
	if isNumber && both && (place{field: c.key}).is(whole...) {
		return x < y
	}
	return a < b
}

// after selects the rows behind a key, and some before it where no literal can name
// it.
func (c *Collection) after(key string) (string, error) {
	name := c.key.GetName()
	if key == "" {
		return "", nil
	}
	if (place{field: c.key}).is(whole...) {
		n, ok := wholeNumber(key)
		if !ok {
			return "", sdk.Invalid(fmt.Errorf("%q is not a position in collection %q: use Next of the page before", key, c.name))
		}
		return name + " > " + strconv.FormatInt(n, 10), nil
	}
	if literal, ok := expression.Quote(key); ok {
		return name + " > " + literal, nil
	}
	literal, _ := expression.Quote(beginning(key))
	return name + " >= " + literal, nil
}

// beginning is what a literal can hold of a key.
func beginning(key string) string {
	for i, r := range key {
		if _, ok := expression.Quote(string(r)); !ok {
			return key[:i]
		}
	}
	return key
}
