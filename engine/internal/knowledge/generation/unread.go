package generation

import (
	"maps"
	"strings"

	"github.com/racflow/racflow/engine/internal/source/document"
)

// maxUnread limits for how many documents a note lists the unread parts: each commit writes the note.
const maxUnread = 10_000

// Unread sums what readers skipped in the documents that were read; nil: all was read.
func (s *Source) Unread() document.Unread {
	all := map[string]document.Unread{}
	s.unread.Range(func(id, unread any) bool {
		all[id.(string)] = unread.(document.Unread)
		return true
	})
	return SumUnread(all)
}

// UnreadAfter returns the unread parts of a source's documents, by their ids. For documents that this build did not
// read, it takes them from before.
func (s *Source) UnreadAfter(before map[string]document.Unread) map[string]document.Unread {
	now := map[string]document.Unread{}
	maps.Copy(now, before)
	maps.DeleteFunc(now, func(id string, _ document.Unread) bool {
		_, there := s.places[id]
		return !there
	})
	s.unread.Range(func(id, unread any) bool {
		if delete(now, id.(string)); len(unread.(document.Unread)) > 0 && len(now) < maxUnread {
			now[id.(string)] = unread.(document.Unread)
		}
		return true
	})
	return now
}

// SumUnread sums over documents, without the numbers of pages; nil: all was read.
func SumUnread(all map[string]document.Unread) document.Unread {
	var sum document.Unread
	for _, one := range all {
		if sum == nil && len(one) > 0 {
			sum = document.Unread{}
		}
		for kind, n := range one {
			kind, _, _ = strings.Cut(kind, " (")
			sum[kind] += n
		}
	}
	return sum
}
