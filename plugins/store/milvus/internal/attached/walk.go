package attached

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/racflow/racflow/plugins/store/milvus/internal/column"
	"github.com/racflow/racflow/plugins/store/milvus/internal/expression"
	"github.com/racflow/racflow/plugins/store/milvus/internal/mapping"
	"github.com/racflow/racflow/sdk"
)

const (
	// windowBytes is about how much is read at a time.
	windowBytes = 4 << 20
	// Rows that are read at a time: Milvus Lite 2 takes time for vectors that grows
	// with the square of the rows.
	firstWindow, vectorWindow, plainWindow = 64, 250, 1000
)

// walk calls f with the rows after a key, in the order of the keys, until it returns
// false.
func (c *Collection) walk(ctx context.Context, after string, condition expression.Condition, fields []string, f func(*column.Row) bool) error {
	most := plainWindow
	if slices.Contains(fields, c.Vector.GetName()) {
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
			key := c.KeyOf(r)
			if last != "" && !c.precedes(last, key) {
				if last == after || last == key {
					continue // keys that begin like the last one; a key that is there twice
				}
				return fmt.Errorf("the server does not return the rows of collection %q in the order of their keys", c.Name)
			}
			if last = key; c.IDOf(r) != "" && !f(r) {
				return nil
			}
		}
		switch {
		case len(found) < window:
			return nil
		case last == after && window == maxRows:
			return fmt.Errorf("collection %q has more than %d keys that begin like %.40q, with characters that no expression of the server can hold", c.Name, maxRows, after)
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
	x, isNumber := mapping.WholeNumber(a)
	y, both := mapping.WholeNumber(b)
	if isNumber && both && (mapping.Place{Field: c.Key}).Is(mapping.Whole...) {
		return x < y
	}
	return a < b
}

// after selects the rows behind a key, and some before it where no literal can name
// it.
func (c *Collection) after(key string) (string, error) {
	name := c.Key.GetName()
	if key == "" {
		return "", nil
	}
	if (mapping.Place{Field: c.Key}).Is(mapping.Whole...) {
		n, ok := mapping.WholeNumber(key)
		if !ok {
			return "", sdk.Invalid(fmt.Errorf("%q is not a position in collection %q: use Next of the page before", key, c.Name))
		}
		if n == math.MinInt64 { // Milvus Lite 2 reads this literal as a float
			return name + " >= " + strconv.FormatInt(n+1, 10), nil
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
