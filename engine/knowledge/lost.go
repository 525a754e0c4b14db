package knowledge

import (
	"bytes"
	"maps"
	"slices"
	"sync"
)

// lost are the passages of which an enricher has no addition, though it was asked.
// A build that comes by them once more, since the embedder has to learn from all
// entries first or since the store's process ended, does not ask about them again;
// the next build does. Of their errors only the first is kept: it is the one that is
// told, and there may be as many as passages.
type lost struct {
	mu    sync.Mutex
	of    map[string]lostOf // by the document's id
	first error
}

// lostOf are the passages of one document.
type lostOf struct {
	hash    []byte // of its content
	numbers []int  // ascending
}

// note remembers the passages of a document that failed.
func (l *lost) note(d chunked, failed map[int]error) {
	if len(failed) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]lostOf{}
	}
	numbers := slices.Sorted(maps.Keys(failed))
	if l.first == nil {
		l.first = failed[numbers[0]]
	}
	l.of[d.ID] = lostOf{d.Hash, numbers}
}

// passages returns the numbers of a document's passages that are lost, ascending,
// and what is told of them.
func (l *lost) passages(d chunked) (numbers []int, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.of[d.ID]; bytes.Equal(of.hash, d.Hash) {
		return of.numbers, l.first
	}
	return nil, nil
}
