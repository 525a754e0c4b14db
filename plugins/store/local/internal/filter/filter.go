package filter

import (
	"sync"

	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/plugins/store/local/internal/segment"
	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/sdk"
)

// Selection is the live rows that a filter selects, by part: as bitmaps, or as
// rising rows where there are few. A nil selection is all live rows.
type Selection struct {
	Bits []row.Set
	Rows [][]uint32 // nil: see bits
	N    int
}

const (
	// sparseShare is how many rows there are for each selected one from which on
	// a selection counts as few.
	sparseShare = 64
	// maxSelections bounds the selections that a snapshot keeps.
	maxSelections = 16
)

// Cache keeps what was selected of a snapshot lately. It is safe for concurrent use.
type Cache struct {
	of   *snapshot.Snapshot
	mu   sync.Mutex
	kept map[string]*Selection
}

// NewCache returns the cache of a snapshot, empty.
func NewCache(of *snapshot.Snapshot) *Cache { return &Cache{of: of, kept: map[string]*Selection{}} }

// Selected returns what a filter selects.
func (c *Cache) Selected(f *sdk.Filter) *Selection {
	if f == nil {
		return nil
	}
	key := f.String()
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.kept[key]; ok {
		return known
	}
	if len(c.kept) >= maxSelections {
		clear(c.kept)
	}
	c.kept[key] = choose(c.of, f)
	return c.kept[key]
}

func choose(s *snapshot.Snapshot, f *sdk.Filter) *Selection {
	chosen := &Selection{Bits: make([]row.Set, len(s.Parts))}
	for i := range s.Parts {
		p := partFilter{&s.Parts[i]}
		set := p.matching(f)
		for w := range p.Dead {
			set[w] &^= p.Dead[w]
		}
		chosen.Bits[i] = set
		chosen.N += set.Count()
	}
	if chosen.N > s.Rows/sparseShare {
		return chosen
	}
	chosen.Rows = make([][]uint32, len(s.Parts))
	for i, set := range chosen.Bits {
		chosen.Rows[i] = make([]uint32, 0, set.Count())
		set.Each(func(r int32) { chosen.Rows[i] = append(chosen.Rows[i], uint32(r)) })
	}
	chosen.Bits = nil
	return chosen
}

// partFilter selects rows of one part, removed ones too.
type partFilter struct{ *snapshot.Part }

// matching returns the rows that a filter fits.
func (p partFilter) matching(f *sdk.Filter) row.Set {
	switch f.Op {
	case sdk.FilterAnd:
		set := row.All(p.Segment.Rows)
		for i := range f.Parts {
			for w, x := range p.matching(&f.Parts[i]) {
				set[w] &= x
			}
		}
		return set
	case sdk.FilterOr:
		set := row.NewSet(p.Segment.Rows)
		for i := range f.Parts {
			for w, x := range p.matching(&f.Parts[i]) {
				set[w] |= x
			}
		}
		return set
	case sdk.FilterNot:
		set := row.All(p.Segment.Rows)
		for w, x := range p.matching(&f.Parts[0]) {
			set[w] &^= x
		}
		return set
	}
	set := row.NewSet(p.Segment.Rows)
	if f.Field == sdk.FieldID {
		p.matchID(f, set)
		return set
	}
	field := segment.AppendField(nil, f.Field, f.Key)
	for _, v := range f.Values {
		p.matchValue(f, field, v, set)
	}
	return set
}

// matchID sets the rows whose id compares as asked: one for a value of In, where
// the directory helps; all are looked at for the other operators.
func (p partFilter) matchID(f *sdk.Filter, set row.Set) {
	if f.Op == sdk.FilterIn {
		for _, v := range f.Values {
			id, _ := v.(string)
			if r := p.Segment.Find(segment.Hash(id), id); r >= 0 {
				set.Add(r)
			}
		}
		return
	}
	for r := range int32(p.Segment.Rows) {
		if f.Match(p.ID(r), "", nil) {
			set.Add(r)
		}
	}
}

// matchValue sets the rows that have a value of a field that compares with v as
// asked. These values are neighbours in the index, and so are their lists.
func (p partFilter) matchValue(f *sdk.Filter, field []byte, v any, set row.Set) {
	key, ok := segment.AppendValue(field[:len(field):len(field)], v)
	if !ok {
		return
	}
	index := &p.Values
	kind := string(key[:len(field)+1])
	at := index.Search(string(key))
	equal := at
	if at < index.Len() && index.Key(at) == string(key) {
		equal++
	}
	from, to := at, at
	switch f.Op {
	case sdk.FilterIn:
		to = equal
	case sdk.FilterLess, sdk.FilterLessEqual:
		from = index.Search(kind)
		if f.Op == sdk.FilterLessEqual {
			to = equal
		}
	case sdk.FilterGreater, sdk.FilterGreaterEqual:
		to = index.After(index.Search(kind), kind)
		if f.Op == sdk.FilterGreater {
			from = equal
		}
	case sdk.FilterPrefix:
		to = index.After(at, string(key))
	}
	if text, _ := v.(string); len(text) >= segment.ValueBytes && equal > at {
		// The index does not have the whole of these strings: only the rows tell.
		p.matchRows(f, at, set)
		if from == at {
			from = equal
		}
		if to == equal {
			to = at
		}
	}
	p.setRows(from, to, set)
}

// setRows sets the rows of the keys from first up to last, without it.
func (p partFilter) setRows(first, last int, set row.Set) {
	from, to := p.Values.Extent(first, last)
	for _, r := range p.Values.Rows[from:to] {
		if int(r) < p.Segment.Rows {
			set.Add(int32(r))
		}
	}
}

// matchRows sets those rows of a key that the filter fits.
func (p partFilter) matchRows(f *sdk.Filter, key int, set row.Set) {
	p.Values.Each(key, func(r, _ uint32) {
		if int(r) >= p.Segment.Rows {
			return
		}
		of := p.Row(int32(r))
		if f.Match(of.ID, of.Label, row.DecodeMeta(of.Meta)) {
			set.Add(int32(r))
		}
	})
}
