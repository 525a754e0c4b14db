package knowledge

import (
	"bytes"
	"crypto/sha256"
	"fmt"
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

// leavesBare notes passages of which an addition is missing, and reports whether
// there are any. Their document is done again by the next build; this one does not
// ask for them a second time.
func (b *builder) leavesBare(d chunked, added []addition) bool {
	for n, found := range added {
		b.enrichers[n].lost.note(d, found.failed)
	}
	missing := false
	for i := range d.chunks {
		for n, found := range added {
			why := found.failed[i]
			if why == nil {
				continue
			}
			if missing = true; b.Report.Unenriched == 0 {
				at := b.rows.places[d.ID]
				at.Err = b.enrichers[n].named(why)
				if b.chunker != nil {
					at.Err = fmt.Errorf("chunk %d: %w", i, at.Err)
				}
				b.Report.FirstUnenriched = at
			}
			b.Report.Unenriched++
			break
		}
	}
	return missing
}

// bare is a hash that no content has: a document that has it is done again.
func bare(hash []byte) []byte {
	sum := sha256.Sum256(append([]byte("bare\n"), hash...))
	return sum[:hashBytes]
}
