package attached

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// Get returns entries by their ids. One that no expression can name is not found.
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
	for part := range slices.Chunk(unique, plainWindow/4) {
		expr, n := OneOf(c.ID, part)
		if n == 0 {
			continue
		}
		found, _, err := c.query(ctx, expr, c.Outputs(true, true, false), table.MaxRows)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			for _, i := range at[c.IDOf(r)] {
				entries[i] = c.Entry(r, true)
			}
		}
	}
	return entries, nil
}

// query returns rows that an expression selects, in the order of their keys: the
// first limit of them. It also returns about how many bytes they took.
func (c *Collection) query(ctx context.Context, expr string, fields []string, limit int) ([]*table.ReplyRow, int, error) {
	var all []*table.ReplyRow
	size := 0
	err := c.call(ctx, "read rows of "+c.Name, func(ctx context.Context, s Service) error {
		reply, err := s.Query(ctx, &milvuspb.QueryRequest{
			CollectionName: c.Name, PartitionNames: c.arguments.Partitions, Expr: expr, OutputFields: fields, UseDefaultConsistency: true,
			// Without these two a server may return any rows, in any order.
			QueryParams: table.Pairs("limit", strconv.Itoa(limit), "iterator", "True", "reduce_stop_for_best", "True"),
		})
		if err != nil {
			return err
		}
		size = proto.Size(reply)
		all, err = table.ReplyRows(reply.GetFieldsData(), nil, c.Key.GetName())
		return err
	})
	return all, size, c.explainError(err)
}

// count returns how many rows there are.
func (c *Collection) count(ctx context.Context) (n int, err error) {
	err = c.call(ctx, "count the rows of "+c.Name, func(ctx context.Context, s Service) error {
		reply, err := s.Query(ctx, &milvuspb.QueryRequest{CollectionName: c.Name, PartitionNames: c.arguments.Partitions, OutputFields: []string{"count(*)"}, UseDefaultConsistency: true})
		if err != nil {
			return err
		}
		n, err = table.CountOfReply(reply)
		return err
	})
	return n, c.explainError(err)
}

// pageBytes is the size at which a page ends before its limit.
const pageBytes = 16 << 20

// first reads the first rows, with the JSON fields, whose members only rows show.
func (c *Collection) first(ctx context.Context) ([]*table.ReplyRow, error) {
	names := []string{c.Key.GetName()}
	for _, f := range c.Fields {
		if f.GetDataType() == schemapb.DataType_JSON {
			names = append(names, f.GetName())
		}
	}
	if len(names) == 1 {
		return nil, nil
	}
	rows, _, err := c.query(ctx, "", names, sampleRows)
	return rows, err
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
	err := c.walk(ctx, scan.After, condition, c.Outputs(scan.Texts, false, scan.Vectors), func(r *table.ReplyRow) bool {
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

const (
	// windowBytes is about how much is read at a time.
	windowBytes = 4 << 20
	// Rows that are read at a time: Milvus Lite 2 takes time for vectors that grows
	// with the square of the rows.
	firstWindow, vectorWindow, plainWindow = 64, 250, 1000
)

// walk calls f with the rows after a key, in the order of the keys, until it returns
// false.
func (c *Collection) walk(ctx context.Context, after string, condition table.Condition, fields []string, f func(*table.ReplyRow) bool) error {
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
		found, size, err := c.query(ctx, table.And(from, condition.Expr), fields, window)
		if err != nil {
			return err
		}
		for _, r := range found {
			key := c.KeyOf(r)
			if key == after {
				continue // a key that is there twice
			}
			if after != "" && c.compareKeys(key, after) < 0 {
				return fmt.Errorf("the server does not return the rows of collection %q in the order of their keys", c.Name)
			}
			if after = key; c.IDOf(r) != "" && !f(r) {
				return nil
			}
		}
		if len(found) < window {
			return nil
		}
		window = max(1, min(most, windowBytes/max(1, size/len(found))))
	}
}

// compareKeys compares keys as the server orders them.
func (c *Collection) compareKeys(a, b string) int {
	x, whole := WholeNumber(a)
	y, both := WholeNumber(b)
	if whole && both && (Place{Field: c.Key}).Is(Whole...) {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// after selects the rows behind a key.
func (c *Collection) after(key string) (string, error) {
	if key == "" {
		return "", nil
	}
	literal, ok := table.Quote(key)
	if (Place{Field: c.Key}).Is(Whole...) {
		_, ok = WholeNumber(key)
		literal = key
	}
	if !ok {
		return "", sdk.Invalid(fmt.Errorf("%.80q is not a position in collection %q, or a key with characters that no expression of the server can hold", key, c.Name))
	}
	return c.Key.GetName() + " > " + literal, nil
}
