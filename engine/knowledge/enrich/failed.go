package enrich

import (
	"bytes"
	"maps"
	"slices"

	"github.com/racflow/racflow/engine/knowledge/units"
)

// failure is the passages of a document of which an enricher has no addition, though
// it was asked. A build that comes by them once more, since the embedder has to learn
// from all entries first or since the store's process ended, does not ask about them
// again; the next build does.
type failure struct {
	hash    []byte // of the document's content
	numbers []int  // ascending
}

// remember remembers the passages of a document that failed.
func (e *enricher) remember(d units.Document, failed map[int]error) {
	if len(failed) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	numbers := slices.Sorted(maps.Keys(failed))
	if e.first == nil {
		e.first = failed[numbers[0]]
	}
	e.failed[d.ID] = failure{d.Hash, numbers}
}

// remembered returns the numbers of a document's passages that failed, ascending, and
// the error to report for them.
func (e *enricher) remembered(d units.Document) (numbers []int, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.failed[d.ID]; bytes.Equal(f.hash, d.Hash) {
		return f.numbers, e.first
	}
	return nil, nil
}

// Unenriched returns how many passages of a document lack an addition, and the number
// and the error of the first.
func (all Enrichers) Unenriched(d units.Document, added []Additions) (count, first int, why error) {
	for n, a := range added {
		all[n].remember(d, a.failed)
	}
	for i := range d.Chunks {
		for n, a := range added {
			if a.failed[i] == nil {
				continue
			}
			if count++; why == nil {
				first, why = i, all[n].named(a.failed[i])
			}
			break
		}
	}
	return count, first, why
}
