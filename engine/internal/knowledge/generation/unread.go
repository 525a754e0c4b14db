package generation

import (
	"maps"
	"strings"

	"github.com/racflow/racflow/engine/internal/source/document"
)

// maxUnread is of how many documents a note says what was not read: each commit writes it.
const maxUnread = 10_000

// Unread sums what the documents that were read hold and their readers did not read; nil: all was read.
func (s *Source) Unread() document.Unread {
	all := map[string]document.Unread{}
	s.unread.Range(func(id, unread any) bool {
		all[id.(string)] = unread.(document.Unread)
		return true
	})
	return SumUnread(all)
}

// UnreadAfter returns what is not read of the documents of a source, by their ids: of those that were read since, and of
// the others what was known before.
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
