package local

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

const (
	// pageBytes is the size at which a page ends before its limit: it has to fit
	// a message, and memory several times.
	pageBytes = 4 << 20
	// entryBytes is about what an entry takes beside its texts and its vector.
	entryBytes = 160
)

// page returns the entries from a sequence number on, in the order in which
// they were put. A limit below 1 is none. An entry that is put again between
// two pages appears again, at the end; none is missed.
func (s *snapshot) page(ask sdk.Scan, from uint64) sdk.Page {
	var page sdk.Page
	size := 0
	for i := range s.parts {
		p := &s.parts[i]
		wanted := p.labelNumbers(ask.Labels)
		first := sort.Search(p.segment.rows, func(r int) bool { return p.records[r].sequence >= from })
		for r := int32(first); r < int32(p.segment.rows); r++ {
			rec := &p.records[r]
			if p.dead.has(r) || len(ask.Labels) > 0 && !slices.Contains(wanted, rec.label) {
				continue
			}
			if ask.Limit > 0 && len(page.Entries) == ask.Limit || size >= pageBytes {
				page.Next = strconv.FormatUint(rec.sequence, 10)
				p.release()
				return page
			}
			e := p.entry(r, ask.Texts)
			if ask.Vectors {
				e.Vector = slices.Clone(p.vector(r))
			}
			size += entryBytes + len(e.ID) + len(e.Text) + len(e.Label) + len(e.Context) + 4*len(e.Vector)
			page.Entries = append(page.Entries, e)
		}
		p.release()
	}
	return page
}

// labelNumbers returns the numbers that a segment's records have for labels.
func (s *segment) labelNumbers(names []string) []uint32 {
	var numbers []uint32
	for _, name := range names {
		n := sort.Search(len(s.labels.ends), func(i int) bool { return s.labels.at(i) >= name })
		if n < len(s.labels.ends) && s.labels.at(n) == name {
			numbers = append(numbers, uint32(n))
		}
	}
	return numbers
}

// entry returns a copy of a row as an entry: with texts, also its text, context
// and metadata.
func (s *segment) entry(r int32, texts bool) sdk.Entry {
	row := s.row(r)
	e := sdk.Entry{ID: strings.Clone(row.id), Label: strings.Clone(row.label)}
	if row.hash != "" {
		e.Hash = []byte(row.hash)
	}
	if texts {
		e.Text, e.Context, e.Meta = strings.Clone(row.text), strings.Clone(row.context), decodeMeta(row.meta)
	}
	return e
}
