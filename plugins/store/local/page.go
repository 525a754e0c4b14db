package local

import (
	"slices"
	"sort"
	"strconv"

	"github.com/racflow/racflow/sdk"
)

// pageBytes is the size at which a page ends before its limit: it has to fit
// a message.
const pageBytes = 16 << 20

// page returns the entries from a sequence number on, in the order in which
// they were put. A limit below 1 is none. An entry that is put again between
// two pages appears again, at the end; none is missed.
func (t *table) page(s sdk.Scan, from uint64) sdk.Page {
	var wanted []uint32
	for _, name := range s.Labels {
		if n, ok := t.labels.number[name]; ok {
			wanted = append(wanted, n)
		}
	}
	var page sdk.Page
	size := 0
	first := sort.Search(len(t.rows), func(i int) bool { return t.rows[i].sequence >= from })
	for r := first; r < len(t.rows); r++ {
		row := &t.rows[r]
		if row.id == "" || len(s.Labels) > 0 && !slices.Contains(wanted, row.label) {
			continue
		}
		if s.Limit > 0 && len(page.Entries) == s.Limit || size >= pageBytes {
			page.Next = strconv.FormatUint(row.sequence, 10)
			break
		}
		e := t.entry(int32(r), s.Texts)
		if s.Vectors {
			e.Vector = slices.Clone(t.vectors.row(int32(r)))
		}
		size += len(e.ID) + len(e.Text) + len(e.Label) + len(e.Context) + 4*len(e.Vector)
		page.Entries = append(page.Entries, e)
	}
	return page
}
