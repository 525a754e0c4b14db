package generation

import (
	"maps"
	"sync"

	"github.com/racflow/racflow/engine/internal/source/document"
)

// maxUnread is of how many documents a note says what was not read: each commit writes it.
const maxUnread = 10_000

// Reads holds what was not read of the documents that were read, by their ids. Documents may be read while a build commits.
type Reads struct {
	mu  sync.Mutex
	all map[string]document.Unread
}

func (r *Reads) set(id string, unread document.Unread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]document.Unread{}
	}
	r.all[id] = unread
}

// Sum sums over all documents that were read.
func (r *Reads) Sum() document.Unread {
	r.mu.Lock()
	defer r.mu.Unlock()
	return SumUnread(r.all)
}

// UnreadAfter returns what is known of the documents of a source after a build: of those that it read, and of the others what was
// known before.
func (s *Source) UnreadAfter(before map[string]document.Unread) map[string]document.Unread {
	s.Unread.mu.Lock()
	defer s.Unread.mu.Unlock()
	now := maps.Clone(before)
	maps.DeleteFunc(now, func(id string, _ document.Unread) bool {
		_, there := s.places[id]
		return !there
	})
	for id, unread := range s.Unread.all {
		if delete(now, id); len(unread) > 0 && len(now) < maxUnread {
			if now == nil {
				now = map[string]document.Unread{}
			}
			now[id] = unread
		}
	}
	return now
}

// SumUnread sums over documents; nil: all was read.
func SumUnread(all map[string]document.Unread) document.Unread {
	var sum document.Unread
	for _, one := range all {
		if sum == nil && len(one) > 0 {
			sum = document.Unread{}
		}
		sum.Add(one)
	}
	return sum
}
