package units

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/sdk"
)

// Stock is what a store holds of units, and what a build has replaced of that.
type Stock struct {
	cut      bool              // units are cut into chunks
	units    map[string]stored // by id; those that Replace was not called with yet
	replaced map[string]bool   // entries that got another content
}

// stored is what a store holds of a unit.
type stored struct {
	label   string
	hash    []byte // of the unit
	count   uint32 // entries that it should have
	numbers []int  // of those that it has
	whole   bool   // all of them are there, made of one content
}

// TakeStock lists the units of a collection.
func TakeStock(ctx context.Context, store stages.Store, collection string, cut bool) (*Stock, error) {
	s := &Stock{cut, map[string]stored{}, map[string]bool{}}
	err := stages.Scan(ctx, store, collection, sdk.Scan{}, func(e sdk.Entry) {
		id, number := s.UnitOf(e.ID)
		hash, count := e.Hash, uint32(1)
		if cut && len(hash) == HashBytes+4 {
			count = binary.BigEndian.Uint32(hash[HashBytes:])
			hash = hash[:HashBytes]
		}
		u, known := s.units[id]
		if !known {
			u = stored{label: e.Label, hash: hash, count: count, whole: true}
		}
		u.whole = u.whole && u.count == count && bytes.Equal(u.hash, hash)
		u.numbers = append(u.numbers, number)
		s.units[id] = u
	})
	for id, u := range s.units {
		u.whole = u.whole && int(u.count) == len(u.numbers)
		s.units[id] = u
	}
	return s, err
}

// Difference is what has to be done to a store.
type Difference struct {
	Todo   []Unit          // units to make entries of
	Gone   []string        // entries whose unit is gone
	Labels map[string]bool // of all of these, before and after
}

// Compare compares the units of a source with the stock, by the hash that their
// entries get; all of them are to be made again if all is set.
func (s *Stock) Compare(units []Unit, hash func([]byte) []byte, all bool) Difference {
	d := Difference{Labels: map[string]bool{}}
	there := make(map[string]bool, len(units))
	for _, u := range units {
		there[u.ID] = true
		old, known := s.units[u.ID]
		if known && !all && old.whole && bytes.Equal(old.hash, hash(u.Hash)) {
			delete(s.units, u.ID)
			continue
		}
		if known {
			d.Labels[old.label] = true
		}
		d.Labels[u.Label] = true
		d.Todo = append(d.Todo, u)
	}
	for id, old := range s.units {
		if !there[id] {
			d.Gone = append(d.Gone, s.idsOf(id, old.numbers)...)
			d.Labels[old.label] = true
			delete(s.units, id)
		}
	}
	return d
}

// Replace notes that a unit now has so many entries. It returns how many of them
// replace one, and the ids of those that the unit no longer has.
func (s *Stock) Replace(unit string, entries int) (changed int, surplus []string) {
	var gone []int
	for _, n := range s.units[unit].numbers {
		if n >= entries {
			gone = append(gone, n)
			continue
		}
		changed++
		s.replaced[s.idOf(unit, n)] = true
	}
	delete(s.units, unit)
	return changed, s.idsOf(unit, gone)
}

// Replaced reports whether an entry got another content.
func (s *Stock) Replaced(id string) bool { return s.replaced[id] }

// Rest returns the entries of units that turned out to be unusable, or that are gone
// since they were listed.
func (s *Stock) Rest() (ids []string) {
	for id, old := range s.units {
		ids = append(ids, s.idsOf(id, old.numbers)...)
	}
	return ids
}

// UnitOf returns the unit that an entry belongs to, and the entry's number in it.
func (s *Stock) UnitOf(id string) (unit string, number int) {
	at := strings.LastIndexByte(id, '#')
	if !s.cut || at < 0 {
		return id, 0
	}
	number, _ = strconv.Atoi(id[at+1:])
	return id[:at], number
}

func (s *Stock) idOf(unit string, number int) string {
	if s.cut {
		return chunkID(unit, number)
	}
	return unit
}

func (s *Stock) idsOf(unit string, numbers []int) []string {
	ids := make([]string, len(numbers))
	for i, n := range numbers {
		ids[i] = s.idOf(unit, n)
	}
	return ids
}
