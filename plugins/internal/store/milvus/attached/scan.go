package attached

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

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
	set := func(r *ColumnRow) {
		for _, i := range at[c.IDOf(r)] {
			entries[i] = c.Entry(r, true)
		}
	}
	fields := c.Outputs(true, true, false)
	for part := range slices.Chunk(unique, plainWindow/4) {
		expr, n := OneOf(c.ID, part)
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
		if _, ok := table.Quote(id); ok || entries[at[id][0]].ID != "" {
			continue
		}
		from, isKey := "", c.ID.Field == c.Key
		if isKey {
			from = beginning(id)
		}
		err := c.walk(ctx, from, table.Condition{}, fields, func(r *ColumnRow) bool {
			set(r)
			return entries[at[id][0]].ID == "" && !(isKey && c.KeyOf(r) > id)
		})
		if err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// maxRows is the most that a server returns at a time.
const maxRows = 16384

// query returns rows that an expression selects, in the order of their keys: the
// first limit of them. It also returns about how many bytes they took.
func (c *Collection) query(ctx context.Context, expr string, fields []string, limit int) ([]*ColumnRow, int, error) {
	var all []*ColumnRow
	size := 0
	err := c.call(ctx, "read rows of "+c.Name, func(ctx context.Context, s Service) error {
		reply, err := s.Query(ctx, &milvuspb.QueryRequest{
			CollectionName: c.Name, PartitionNames: c.arguments.Partitions, Expr: expr, OutputFields: fields, UseDefaultConsistency: true,
			// Without these two a server may return any rows, in any order.
			QueryParams: pairs(map[string]string{"limit": strconv.Itoa(limit), "iterator": "True", "reduce_stop_for_best": "True"}),
		})
		if err != nil {
			return err
		}
		size = proto.Size(reply)
		all, err = c.rows(reply.GetFieldsData(), nil)
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
		for _, f := range reply.GetFieldsData() {
			if data := f.GetScalars().GetLongData().GetData(); len(data) == 1 {
				n = int(data[0])
			}
		}
		return nil
	})
	return n, c.explainError(err)
}

// rows makes rows of columns; their ids are in a column, too, if none are given.
func (c *Collection) rows(fields []*schemapb.FieldData, ids *schemapb.IDs) ([]*ColumnRow, error) {
	key := c.Key.GetName()
	if ids != nil {
		fields = slices.DeleteFunc(slices.Clone(fields), func(f *schemapb.FieldData) bool { return f.GetFieldName() == key })
		fields = append(fields, idColumn(key, ids))
	}
	for _, f := range fields {
		if f.GetFieldName() == key {
			return ReadColumn(fields, VectorLength(f))
		}
	}
	return nil, nil // no row matched
}

func idColumn(name string, ids *schemapb.IDs) *schemapb.FieldData {
	s := &schemapb.ScalarField{}
	switch ids := ids.GetIdField().(type) {
	case *schemapb.IDs_IntId:
		s.Data = &schemapb.ScalarField_LongData{LongData: ids.IntId}
	case *schemapb.IDs_StrId:
		s.Data = &schemapb.ScalarField_StringData{StringData: ids.StrId}
	}
	return &schemapb.FieldData{FieldName: name, Field: &schemapb.FieldData_Scalars{Scalars: s}}
}

func pairs(values map[string]string) []*commonpb.KeyValuePair {
	var all []*commonpb.KeyValuePair
	for _, key := range slices.SortedFunc(maps.Keys(values), cmp.Compare[string]) {
		all = append(all, &commonpb.KeyValuePair{Key: key, Value: values[key]})
	}
	return all
}

// pageBytes is the size at which a page ends before its limit.
const pageBytes = 16 << 20

// first reads the first rows, with all that this package understands, and how many bytes
// they took.
func (c *Collection) first(ctx context.Context) ([]*ColumnRow, int, error) {
	names := []string{c.Key.GetName(), c.Vector.GetName()}
	for _, f := range c.Fields {
		if p := (Place{Field: f}); f != c.Key && (p.Is(Scalars...) || p.Is(schemapb.DataType_JSON)) {
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
	err := c.walk(ctx, scan.After, condition, c.Outputs(scan.Texts, false, scan.Vectors), func(r *ColumnRow) bool {
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

// scores says how the scores of a server become cosines.
type scores struct {
	metric string
	exact  bool    // they do; else cosines are computed from the vectors
	norm   float64 // that the vectors have on average, as far as they are known; 0: there are none
	note   string  // a sentence for people
}

// query is the vector that the server is asked for. By L2 a vector with norm 1 is near to short vectors
// wherever they point, so it gets the norm that vectors of the collection have.
func (s scores) query(x []float32) []float32 {
	if s.exact || s.norm == 0 {
		return table.UnitVector(x)
	}
	scale, out := s.norm/Norm(x), make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(scale * float64(v))
	}
	return out
}

// cosine makes a score of an entry whose vector has norm 1 the cosine.
func (s scores) cosine(score float32) float32 {
	if s.metric == MetricL2 { // the square of the distance, which is 2 - 2 cos
		return ClipText(1 - float64(score)/2)
	}
	return ClipText(float64(score))
}

// tolerance is how far a cosine may be off that is made of a score; vectors of 16
// bits are off by some of it.
const tolerance = 0.005

// calibrate finds out whether scores are cosines, by a search among the first rows.
func (c *Collection) calibrate(ctx context.Context, first []*ColumnRow) error {
	c.scores = scores{metric: c.Metric(c.Schema)}
	vectors := map[string][]float32{}
	var keys []string
	var query []float32
	directed := 0.0 // vectors that are not all zero, whose distance by L2 says nothing of the cosine
	for _, r := range first {
		x, _ := r.Value(c.Vector.GetName()).([]float32)
		if len(x) != c.dimension {
			continue
		}
		key := c.KeyOf(r)
		vectors[key], keys = x, append(keys, key)
		if Cosine(x, x) > 0 {
			query = table.UnitVector(x)
			c.scores.norm += Norm(x)
			directed++
		}
	}
	c.scores.norm /= max(directed, 1)
	if query == nil {
		c.scores.exact = c.scores.metric == MetricCosine
		c.scores.note = "None of the first rows has a vector."
		return nil
	}
	expr, n := OneOf(Place{Field: c.Key}, keys)
	if n == 0 { // no literal can name their keys
		expr, n = "", sampleRows
	}
	lists, err := c.search(ctx, c.denseRequest([][]float32{query}, expr, c.Outputs(false, false, false), n))
	if err != nil {
		return err
	}
	c.scores.exact = len(lists[0]) > 0
	for _, found := range lists[0] {
		if x := vectors[found.key]; x != nil && math.Abs(float64(c.scores.cosine(found.score)-Cosine(query, x))) > tolerance {
			c.scores.exact = false
		}
	}
	if c.scores.exact && c.scores.metric == MetricL2 {
		if c.scores.exact, err = c.allLong(ctx); err != nil {
			return err
		}
	}
	c.scores.note = "The server's scores (" + c.scores.metric + ") are read as cosines."
	if c.scores.exact && c.scores.metric != MetricCosine {
		c.scores.note = "The server's scores (" + c.scores.metric + ") are read as cosines if the norms in the sample are 1; else racflow orders by the cosine what the server chooses by them, twice the candidates."
	}
	if !c.scores.exact {
		c.scores.note = "The server's scores (" + c.scores.metric + ") are no cosines, as where vectors have not norm 1: it chooses twice the candidates by them, and racflow orders these by the cosine."
	}
	return nil
}

// measured is the collection where vectors beyond the first rows have this mean norm; 0: there is none that
// is not 1.
func (c *Collection) measured(norm float64) *Collection {
	if norm == 0 || c.scores.metric == MetricCosine {
		return c
	}
	other := *c
	other.scores.exact, other.scores.norm = false, norm
	return &other
}

// allLong reports whether no vector of the collection is shorter than norm 1: the one
// that is nearest to zero is the shortest. A vector that is all zero, as a failed embedder
// leaves it, would pass for one with the cosine 0.5.
func (c *Collection) allLong(ctx context.Context) (bool, error) {
	lists, err := c.search(ctx, c.denseRequest([][]float32{make([]float32, c.dimension)}, "", c.Outputs(false, false, false), 1))
	if err != nil {
		return false, err
	}
	return len(lists[0]) > 0 && lists[0][0].score > 1-2*tolerance, nil
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
func (c *Collection) walk(ctx context.Context, after string, condition table.Condition, fields []string, f func(*ColumnRow) bool) error {
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
	x, isNumber := WholeNumber(a)
	y, both := WholeNumber(b)
	if isNumber && both && (Place{Field: c.Key}).Is(Whole...) {
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
	if (Place{Field: c.Key}).Is(Whole...) {
		n, ok := WholeNumber(key)
		if !ok {
			return "", sdk.Invalid(fmt.Errorf("%q is not a position in collection %q: use Next of the page before", key, c.Name))
		}
		if n == math.MinInt64 { // Milvus Lite 2 reads this literal as a float
			return name + " >= " + strconv.FormatInt(n+1, 10), nil
		}
		return name + " > " + strconv.FormatInt(n, 10), nil
	}
	if literal, ok := table.Quote(key); ok {
		return name + " > " + literal, nil
	}
	literal, _ := table.Quote(beginning(key))
	return name + " >= " + literal, nil
}

// beginning is what a literal can hold of a key.
func beginning(key string) string {
	for i, r := range key {
		if _, ok := table.Quote(string(r)); !ok {
			return key[:i]
		}
	}
	return key
}
