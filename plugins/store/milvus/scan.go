package milvus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/racflow/racflow/sdk"
)

const (
	// pageBytes is the size at which a page ends before its limit: it has to fit
	// a message.
	pageBytes = 16 << 20
	// Rows are read in windows of places. With vectors they are small:
	// Milvus Lite 2 takes time that grows with the square of the rows.
	vectorWindow  = 250
	plainWindow   = 1000
	slowestGrowth = 4 // a window that is less than a quarter full makes the next one larger
)

// get returns entries by their ids.
func (c *collection) get(ctx context.Context, ids []string) ([]sdk.Entry, error) {
	if c.known() == nil {
		return nil, c.notOpen()
	}
	entries := make([]sdk.Entry, len(ids))
	err := c.read(ctx, func(s *state) error {
		clear(entries)
		if s.record.Entries == 0 {
			return nil
		}
		place := map[string][]int{}
		var slots []int64
		for i, id := range ids {
			if place[id] == nil {
				slots = append(slots, slotOf(id))
			}
			place[id] = append(place[id], i)
		}
		for part := range slices.Chunk(slots, lookAhead) {
			rows, err := c.query(ctx, s.visible()+" and "+numberIn(fieldSlot, part), slices.Concat(fieldsScan, fieldsTexts), c.level())
			if err != nil {
				return err
			}
			for _, r := range rows {
				if _, dead := s.dead[r.sequence]; dead {
					continue
				}
				for _, i := range place[r.entry.ID] {
					entries[i] = r.entry
				}
			}
		}
		return nil
	})
	return entries, err
}

// scan returns the entries from a place on, in the order in which they were
// put. A limit below 1 is none. An entry that is put again between
// two pages appears again, at the end; none is missed.
func (c *collection) scan(ctx context.Context, q sdk.Scan) (sdk.Page, error) {
	opened := c.known()
	if opened == nil {
		return sdk.Page{}, c.notOpen()
	}
	from := int64(0)
	if q.After != "" {
		var err error
		if from, err = strconv.ParseInt(q.After, 36, 64); err != nil || from < 0 {
			return sdk.Page{}, sdk.Invalid(fmt.Errorf("%q is not a place in a collection: use Next of the page before", q.After))
		}
	}
	var filter *sdk.Filter
	if len(q.Labels) > 0 {
		filter = &sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldLabel}
		for _, label := range q.Labels {
			filter.Values = append(filter.Values, label)
		}
	}
	fields := slices.Clone(fieldsScan)
	if q.Texts {
		fields = append(fields, fieldsTexts...)
	}
	if q.Vectors && opened.schema.Dimension > 0 {
		fields = append(fields, fieldVector)
	}
	var page sdk.Page
	err := c.read(ctx, func(s *state) error {
		page = sdk.Page{}
		if s.record.Entries == 0 {
			return nil
		}
		size := 0
		return c.entries(ctx, s, filter, from, fields, func(r found) bool {
			if q.Limit > 0 && len(page.Entries) == q.Limit || size >= pageBytes {
				page.Next = strconv.FormatInt(r.place, 36)
				return false
			}
			e := r.entry
			if len(e.Vector) > 0 {
				e.Vector = e.Vector[:opened.schema.Dimension]
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

// entries calls f with the entries of a state that a filter selects, in the
// order of their places, until it returns false.
func (c *collection) entries(ctx context.Context, s *state, filter *sdk.Filter, from int64, fields []string, f func(found) bool) error {
	cond := translate(filter, false)
	if cond.none {
		return nil
	}
	expr := s.visible()
	if cond.expr != "" {
		expr += " and " + cond.expr
	}
	err := c.walk(ctx, from, s.record.Next, expr, fields, func(r found) error {
		if _, dead := s.dead[r.sequence]; !dead && filter.Match(r.entry.ID, r.entry.Label, r.entry.Meta) && !f(r) {
			return errEnough{}
		}
		return nil
	})
	if err == (errEnough{}) {
		return nil
	}
	return err
}

// walk calls f with the rows whose places are at least from and below to, and
// that an expression selects, in the order of their places. Windows of places
// need neither an order nor an iterator of the server.
func (c *collection) walk(ctx context.Context, from, to int64, expr string, fields []string, f func(found) error) error {
	smallest := int64(plainWindow)
	if slices.Contains(fields, fieldVector) {
		smallest = vectorWindow
	}
	window := smallest
	for from < to {
		end := min(from+window, to)
		rows, err := c.query(ctx, fmt.Sprintf(`%s >= "%s" and %s < "%s" and %s`, fieldKey, digits(from), fieldKey, digits(end), expr), fields, c.level())
		if err != nil {
			return err
		}
		slices.SortFunc(rows, byPlace)
		rows = slices.CompactFunc(rows, func(a, b found) bool { return a.sequence == b.sequence })
		for _, r := range rows {
			if err := f(r); err != nil {
				return err
			}
		}
		from = end
		if int64(len(rows)) < smallest/slowestGrowth {
			window = min(2*window, 4*smallest)
		} else {
			window = smallest
		}
	}
	return nil
}

func byPlace(a, b found) int {
	return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.sequence, b.sequence))
}

// exhaust searches by reading every entry that the filter selects. It is what
// is left where too much of what a server finds has to be thrown away.
func (c *collection) exhaust(ctx context.Context, s *state, p *probe, depth int, by side, texts bool) error {
	fields := slices.Concat(fieldsScan, fieldsTexts)
	if _, lexical := by.(lexicalSide); !lexical {
		fields = append(fields, fieldVector)
	}
	var hits []hit
	err := c.entries(ctx, s, p.filter, 0, fields, func(r found) bool {
		r.score = dot(p.vector, r.entry.Vector)
		r.entry.Vector = nil
		if by.counts() {
			r.counts = countWords(*s.analyzer, r.entry.Context, r.entry.Text).pack()
		}
		if !texts {
			r.entry.Text, r.entry.Context = "", ""
		}
		if h, ok := accept(s, p, &r, by); ok {
			hits = append(hits, h)
		}
		if len(hits) > 4*depth+maxLimit {
			hits = best(hits, depth, by)
		}
		return true
	})
	by.put(p, best(hits, depth, by))
	return err
}

func dot(a, b []float32) float32 {
	var sum float32
	for i := range min(len(a), len(b)) {
		sum += a[i] * b[i]
	}
	return sum
}
