package local

import (
	"strings"

	"github.com/racflow/racflow/sdk"
)

// selection is the living rows that a filter selects, by part: as bitmaps, or as
// rising rows where there are few. A nil selection is all living rows.
type selection struct {
	bits []bitmap
	rows [][]uint32 // nil: see bits
	n    int
}

const (
	// sparseShare is how many rows there are for each selected one from which on
	// a selection counts as few.
	sparseShare = 64
	// maxSelections bounds the selections that a snapshot keeps.
	maxSelections = 16
)

// selected returns what a filter selects.
func (s *snapshot) selected(f *sdk.Filter) *selection {
	if f == nil {
		return nil
	}
	key := f.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.selections[key]; ok {
		return known
	}
	chosen := s.choose(f)
	if len(s.selections) >= maxSelections {
		clear(s.selections)
	}
	if s.selections == nil {
		s.selections = map[string]*selection{}
	}
	s.selections[key] = chosen
	return chosen
}

func (s *snapshot) choose(f *sdk.Filter) *selection {
	chosen := &selection{bits: make([]bitmap, len(s.parts))}
	for i := range s.parts {
		p := &s.parts[i]
		set := p.matching(f)
		for w := range p.dead {
			set[w] &^= p.dead[w]
		}
		chosen.bits[i] = set
		chosen.n += set.count()
	}
	if chosen.n > s.rows/sparseShare {
		return chosen
	}
	chosen.rows = make([][]uint32, len(s.parts))
	all := make([]uint32, 0, chosen.n)
	for i, set := range chosen.bits {
		from := len(all)
		set.each(func(r int32) { all = append(all, uint32(r)) })
		chosen.rows[i] = all[from:len(all):len(all)]
	}
	chosen.bits = nil
	return chosen
}

// matching returns the rows of a part, removed ones too, that a filter fits.
func (p *part) matching(f *sdk.Filter) bitmap {
	switch f.Op {
	case sdk.FilterAnd:
		set := p.all()
		for i := range f.Parts {
			for w, x := range p.matching(&f.Parts[i]) {
				set[w] &= x
			}
		}
		return set
	case sdk.FilterOr:
		set := newBitmap(p.segment.rows)
		for i := range f.Parts {
			for w, x := range p.matching(&f.Parts[i]) {
				set[w] |= x
			}
		}
		return set
	case sdk.FilterNot:
		set := p.all()
		for w, x := range p.matching(&f.Parts[0]) {
			set[w] &^= x
		}
		return set
	}
	set := newBitmap(p.segment.rows)
	if f.Field == sdk.FieldID {
		p.matchID(f, set)
		return set
	}
	field := appendField(nil, f.Field, f.Key)
	for _, v := range f.Values {
		p.matchValue(f, field, v, set)
	}
	return set
}

// all is every row.
func (p *part) all() bitmap {
	set := newBitmap(p.segment.rows)
	for w := range set {
		set[w] = ^uint64(0)
	}
	if rest := p.segment.rows % 64; rest > 0 {
		set[len(set)-1] = 1<<rest - 1
	}
	return set
}

// matchID sets the rows whose id compares as asked: one for a value of In, where
// the directory helps; all are looked at for the other operators.
func (p *part) matchID(f *sdk.Filter, set bitmap) {
	if f.Op == sdk.FilterIn {
		for _, v := range f.Values {
			id, _ := v.(string)
			if r := p.segment.find(hash(id), id); r >= 0 {
				set.set(r)
			}
		}
		return
	}
	for r := range int32(p.segment.rows) {
		if f.Match(p.id(r), "", nil) {
			set.set(r)
		}
	}
}

// matchValue sets the rows that have a value of a field that compares with v as
// asked. These values are neighbours in the index, and so are their lists.
func (p *part) matchValue(f *sdk.Filter, field []byte, v any, set bitmap) {
	key, ok := appendValue(field[:len(field):len(field)], v)
	if !ok {
		return
	}
	index := &p.values
	kind := string(key[:len(field)+1])
	at := index.search(string(key))
	equal := at
	if at < index.len() && index.key(at) == string(key) {
		equal++
	}
	from, to := at, at
	switch f.Op {
	case sdk.FilterIn:
		to = equal
	case sdk.FilterLess, sdk.FilterLessEqual:
		from = index.search(kind)
		if f.Op == sdk.FilterLessEqual {
			to = equal
		}
	case sdk.FilterGreater, sdk.FilterGreaterEqual:
		to = index.after(index.search(kind), kind)
		if f.Op == sdk.FilterGreater {
			from = equal
		}
	case sdk.FilterPrefix:
		to = index.after(at, string(key))
	}
	if text, _ := v.(string); len(text) >= valueBytes && equal > at {
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
func (p *part) setRows(first, last int, set bitmap) {
	from, to := p.values.extent(first, last)
	for _, r := range p.values.rows[from:to] {
		if int(r) < p.segment.rows {
			set.set(int32(r))
		}
	}
}

// matchRows sets those rows of a key that the filter fits.
func (p *part) matchRows(f *sdk.Filter, key int, set bitmap) {
	p.values.each(key, func(r, _ uint32) {
		if int(r) >= p.segment.rows {
			return
		}
		row := p.row(int32(r))
		if f.Match(row.id, row.label, decodeMeta(row.meta)) {
			set.set(int32(r))
		}
	})
}

// after returns the first key from at on that does not begin with prefix.
func (l *lists) after(at int, prefix string) int {
	low, high := at, l.len()
	for low < high {
		if middle := (low + high) / 2; strings.HasPrefix(l.key(middle), prefix) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}
