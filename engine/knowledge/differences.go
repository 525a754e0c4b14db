package knowledge

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/racflow/racflow/sdk"
)

// stored is what is known of the entries of a unit in the store.
type stored struct {
	label   string
	hash    []byte // of the unit
	count   uint32 // entries that it should have
	numbers []int  // of those that it has
	whole   bool   // all of them are there, made of one content
}

// stored lists the units of the main collection.
func (b *builder) stored(ctx context.Context) (map[string]stored, error) {
	all := map[string]stored{}
	err := scan(ctx, b.store, b.main, sdk.Scan{}, func(e sdk.Entry) {
		id, number := b.unitOf(e.ID)
		hash, count := e.Hash, uint32(1)
		if b.chunker != nil && len(hash) == hashBytes+4 {
			count = binary.BigEndian.Uint32(hash[hashBytes:])
			hash = hash[:hashBytes]
		}
		s, known := all[id]
		if !known {
			s = stored{label: e.Label, hash: hash, count: count, whole: true}
		}
		s.whole = s.whole && s.count == count && bytes.Equal(s.hash, hash)
		s.numbers = append(s.numbers, number)
		all[id] = s
	})
	for id, s := range all {
		s.whole = s.whole && int(s.count) == len(s.numbers)
		all[id] = s
	}
	return all, err
}

// differences returns the units to make entries of, and the ids of the entries
// whose unit is gone. It takes the unchanged ones out of b.old.
func (b *builder) differences(all bool, changedLabels map[string]bool) (todo []unit, gone []string) {
	there := make(map[string]bool, len(b.rows.units))
	for _, u := range b.rows.units {
		there[u.ID] = true
		old, known := b.old[u.ID]
		if known && !all && old.whole && bytes.Equal(old.hash, b.stamp(u.Hash)) {
			delete(b.old, u.ID)
			continue
		}
		if known {
			changedLabels[old.label] = true
		}
		changedLabels[u.Label] = true
		todo = append(todo, u)
	}
	for id, old := range b.old {
		if !there[id] {
			gone = append(gone, b.idsOf(id, old.numbers)...)
			changedLabels[old.label] = true
			delete(b.old, id)
		}
	}
	return todo, gone
}

// compare counts what a batch changes, and returns the ids of the entries that
// its units no longer have.
func (b *builder) compare(m batch) (surplus []string) {
	for _, u := range m.units {
		var kept, gone []int
		for _, n := range b.old[u.id].numbers {
			if n < u.entries {
				kept = append(kept, n)
			} else {
				gone = append(gone, n)
			}
		}
		delete(b.old, u.id)
		for _, id := range b.idsOf(u.id, kept) {
			b.changed[id] = true
		}
		b.Report.Changed += len(kept)
		b.Report.Added += u.entries - len(kept)
		surplus = append(surplus, b.idsOf(u.id, gone)...)
	}
	return surplus
}
