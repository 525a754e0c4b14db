package search

import (
	"github.com/racflow/racflow/plugins/internal/store/segment"
	"github.com/racflow/racflow/sdk"
)

// This file finds the rows that a filter selects, by the inverted lists of labels and metadata. Its cost is
// proportional to the number of selected rows, plus a bit for each row of a part.

// selection holds the live rows that a filter selects, by part. A nil selection means all live rows.
type selection []segment.RowSet

// Selected returns the rows that a filter selects; nil: all.
func Selected(s *segment.Snapshot, f *sdk.Filter) selection {
	if f == nil {
		return nil
	}
	chosen := make(selection, len(s.Parts))
	for i := range s.Parts {
		p := partFilter{&s.Parts[i]}
		chosen[i] = p.matching(f)
		for w := range p.Dead {
			chosen[i][w] &^= p.Dead[w]
		}
	}
	return chosen
}

// partFilter selects rows of one part, including removed ones.
type partFilter struct{ *segment.Part }

// matching returns the rows that match a filter.
func (p partFilter) matching(f *sdk.Filter) segment.RowSet {
	switch f.Op {
	case sdk.FilterAnd:
		set := segment.AllRows(p.Segment.Rows)
		for i := range f.Parts {
			for w, x := range p.matching(&f.Parts[i]) {
				set[w] &= x
			}
		}
		return set
	case sdk.FilterOr:
		set := segment.NewRowSet(p.Segment.Rows)
		for i := range f.Parts {
			for w, x := range p.matching(&f.Parts[i]) {
				set[w] |= x
			}
		}
		return set
	case sdk.FilterNot:
		set := segment.AllRows(p.Segment.Rows)
		for w, x := range p.matching(&f.Parts[0]) {
			set[w] &^= x
		}
		return set
	}
	set := segment.NewRowSet(p.Segment.Rows)
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

// matchID adds the rows whose id matches the comparison. For In it looks each value up in the directory; for other
// operators it examines all rows.
func (p partFilter) matchID(f *sdk.Filter, set segment.RowSet) {
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

// matchValue adds the rows with a field value that matches the comparison with v. Matching values are adjacent in the
// index, and so are their lists.
func (p partFilter) matchValue(f *sdk.Filter, field []byte, v any, set segment.RowSet) {
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
		// The index has only the beginning of these strings: check the rows.
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

// setRows adds the rows of the keys from first up to last, excluding last.
func (p partFilter) setRows(first, last int, set segment.RowSet) {
	from, to := p.Values.Extent(first, last)
	for _, r := range p.Values.Rows[from:to] {
		if int(r) < p.Segment.Rows {
			set.Add(int32(r))
		}
	}
}

// matchRows adds those rows of a key that match the filter.
func (p partFilter) matchRows(f *sdk.Filter, key int, set segment.RowSet) {
	p.Values.Each(key, func(r, _ uint32) {
		if int(r) >= p.Segment.Rows {
			return
		}
		of := p.Row(int32(r))
		if f.Match(of.ID, of.Label, segment.DecodeMeta(of.Meta)) {
			set.Add(int32(r))
		}
	})
}
