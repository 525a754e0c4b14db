package snapshot

import (
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/racflow/racflow/sdk"
)

const (
	// pageBytes is the size at which a page ends before its limit: it must fit a
	// message, and memory several times.
	pageBytes = 4 << 20
	// entryBytes is about what an entry takes beside its texts and its vector.
	entryBytes = 160
)

// Entries returns the entries with ids, empty where there is none.
func (s *Snapshot) Entries(ids []string) []sdk.Entry {
	entries := make([]sdk.Entry, len(ids))
	for i, id := range ids {
		if p, r, ok := s.Find(id); ok {
			entries[i] = p.Entry(r, true)
		}
	}
	return entries
}

// Page returns entries in the order in which they were put; the cursor is a sequence
// number. A limit below 1 is none. An entry that is put again between two pages
// appears again, at the end; none is missed.
func (s *Snapshot) Page(ask sdk.Scan) (page sdk.Page, err error) {
	from := uint64(0)
	if ask.After != "" {
		if from, err = strconv.ParseUint(ask.After, 10, 64); err != nil {
			return page, sdk.Invalid(fmt.Errorf("%q is not a position in a collection: use Next of the page before", ask.After))
		}
	}
	size := 0
	for i := range s.Parts {
		p := &s.Parts[i]
		wanted := p.LabelNumbers(ask.Labels)
		first := sort.Search(p.Segment.Rows, func(r int) bool { return p.Records[r].Sequence >= from })
		for r := int32(first); r < int32(p.Segment.Rows); r++ {
			rec := &p.Records[r]
			if p.Dead.Has(r) || len(ask.Labels) > 0 && !slices.Contains(wanted, rec.Label) {
				continue
			}
			if ask.Limit > 0 && len(page.Entries) == ask.Limit || size >= pageBytes {
				page.Next = strconv.FormatUint(rec.Sequence, 10)
				p.Release()
				return page, nil
			}
			e := p.Entry(r, ask.Texts)
			if ask.Vectors {
				e.Vector = slices.Clone(p.Vector(r))
			}
			size += entryBytes + len(e.ID) + len(e.Text) + len(e.Label) + len(e.Context) + 4*len(e.Vector)
			page.Entries = append(page.Entries, e)
		}
		p.Release()
	}
	return page, nil
}
