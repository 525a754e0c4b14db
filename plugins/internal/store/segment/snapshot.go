package segment

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strconv"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file holds the rows of a collection at one commit: its segments, the removed rows of each, and how changes
// lead to the next snapshot. It decides which segments are due for a merge. It knows nothing of logs, and packages
// above it search.

// Snapshot is the rows of a collection at one commit. It never changes: a commit creates another snapshot, which
// shares the segments.
type Snapshot struct {
	Dimension int
	Analyzer  *support.Analyzer // nil: no lexical leg

	// Parts are in the order of their sequence numbers. Parts in files come before parts in memory.
	Parts []Part
	Rows  int // including removed ones; a row's number is its part's base plus its position there
	Live  int
	Words int64 // of the live rows
}

// remover removes rows from parts that others may be reading: it copies a part before changing it.
type remover struct {
	Parts    []Part
	owned    []bool
	analyzer *support.Analyzer
	words    []string
}

// NewRemover does not change the given parts. The analyzer may be nil.
func NewRemover(parts []Part, analyzer *support.Analyzer) *remover {
	return &remover{Parts: slices.Clone(parts), owned: make([]bool, len(parts)), analyzer: analyzer}
}

// Add adds another part after the others.
func (r *remover) Add(p Part) {
	r.Parts, r.owned = append(r.Parts, p), append(r.owned, false)
}

// Remove removes the row with an id, if there is one.
func (r *remover) Remove(id string) {
	h := Hash(id)
	for i := len(r.Parts) - 1; i >= 0; i-- {
		if at := r.Parts[i].Find(h, id); at >= 0 {
			r.removeRow(i, at)
			return
		}
	}
}

func (r *remover) removeRow(number int, at int32) {
	p := &r.Parts[number]
	if !r.owned[number] {
		r.owned[number] = true
		p.Dead, p.Gone = slices.Clone(p.Dead), slices.Clone(p.Gone)
		if p.Dead == nil {
			p.Dead = NewRowSet(p.Segment.Rows)
		}
		if p.Gone == nil && r.analyzer != nil {
			p.Gone = make([]uint32, p.Terms.Len())
		}
	}
	p.Dead.Add(at)
	p.Removed++
	row := p.Row(at)
	if p.Path == "" {
		p.Logged -= row.Size(p.VectorsOf(at))
	}
	if r.analyzer == nil {
		return
	}
	r.words = appendWords(r.words[:0], *r.analyzer, row.Context, row.Text)
	p.Words -= int64(p.Lengths[at])
	slices.Sort(r.words)
	for _, w := range slices.Compact(r.words) {
		if term := p.Terms.Find(Hash(w), w); term >= 0 {
			p.Gone[term]++
		}
	}
}

// Staged holds changes that are not in a snapshot yet.
type Staged struct {
	Rows  Draft    // rows that were put and are in no segment yet
	Parts *remover // earlier parts, from which replaced rows are removed
}

// NewStaged returns a Staged without changes. The analyzer may be nil.
func NewStaged(parts []Part, analyzer *support.Analyzer) *Staged {
	return &Staged{Parts: NewRemover(parts, analyzer)}
}

// Apply adds a change.
func (s *Staged) Apply(one Change) {
	for _, id := range one.Delete {
		delete(s.Rows.Positions, id)
		s.Parts.Remove(id)
	}
	if one.Put != nil {
		for _, r := range one.Put.Rows {
			s.Parts.Remove(r.ID)
		}
		s.Rows.Add(one.Put)
	}
}

// Append returns the parts, followed by the rows of a draft in memory. It merges parts that are due.
func (s *Snapshot) Append(parts []Part, rows *Draft) ([]Part, error) {
	if len(rows.Positions) > 0 {
		fresh, err := s.InMemory([]Input{{Source: rows.Source(s.Analyzer)}})
		if err != nil {
			return nil, err
		}
		parts = append(parts, memoryPart(fresh))
	}
	return s.settle(parts)
}

// InMemory builds a segment in memory.
func (s *Snapshot) InMemory(inputs []Input) (*Segment, error) {
	var m Memory
	if err := Build(NewImageWriter(&m), 0, s.Dimension, s.Analyzer != nil, inputs); err != nil {
		return nil, err
	}
	made, err := newSegment(Aligned(m.Bytes), "")
	if err != nil {
		return nil, errors.Join(errors.New("a segment in memory cannot be read back"), err)
	}
	return made, nil
}

const (
	// pageBytes is the size at which a page ends before its limit: it must fit into a message, and several times into
	// memory.
	pageBytes = 4 << 20
	// entryBytes is about the size of an entry without its texts and its vector.
	entryBytes = 160
)

// Entries returns the entries with the given ids; an entry is empty if the id does not exist.
func (s *Snapshot) Entries(ids []string) []sdk.Entry {
	entries := make([]sdk.Entry, len(ids))
	for i, id := range ids {
		if p, r, ok := s.Find(id); ok {
			entries[i] = p.entry(r, true)
		}
	}
	return entries
}

// Page returns entries in the order in which they were put; the cursor is a sequence number. A limit below 1 means no
// limit. An entry that is put again between two pages appears again, at the end. No entry is missed.
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
		wanted := p.labelNumbers(ask.Labels)
		first := sort.Search(p.Segment.Rows, func(r int) bool { return p.Records[r].Sequence >= from })
		for r := int32(first); r < int32(p.Segment.Rows); r++ {
			rec := &p.Records[r]
			if p.Dead.Has(r) || len(ask.Labels) > 0 && !slices.Contains(wanted, rec.Label) {
				continue
			}
			if ask.Limit > 0 && len(page.Entries) == ask.Limit || size >= pageBytes {
				page.Next = strconv.FormatUint(rec.Sequence, 10)
				return page, nil
			}
			e := p.entry(r, ask.Texts)
			if ask.Vectors {
				if e.Vector = p.Vector(r); !p.Sparse {
					e.Vector = slices.Clone(e.Vector)
				}
			}
			size += entryBytes + len(e.ID) + len(e.Text) + len(e.Label) + len(e.Context) + 4*len(e.Vector)
			page.Entries = append(page.Entries, e)
		}
	}
	return page, nil
}

// EmptySnapshot returns a snapshot without rows.
func EmptySnapshot(schema sdk.Schema) (*Snapshot, error) {
	s := &Snapshot{Dimension: schema.Dimension}
	if schema.Analyzer != "" {
		analyzer, err := support.StoredAnalyzer(schema.Analyzer)
		if err != nil {
			return nil, sdk.Invalid(err)
		}
		s.Analyzer = &analyzer
	}
	return s, nil
}

// Part is a segment, with the set of its removed rows.
type Part struct {
	*Segment
	Base    int32
	Dead    RowSet // nil: none
	Removed int
	Words   int64    // of the live rows
	Gone    []uint32 // by word: removed rows that have it; nil: none
	Logged  int64    // if in memory: the bytes of the live rows in a log
}

// Live is the number of live rows.
func (p *Part) Live() int { return p.Segment.Rows - p.Removed }

// LiveRows yields the live rows, in rising order.
func (p *Part) LiveRows() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for r := range int32(p.Segment.Rows) {
			if !p.Dead.Has(r) && !yield(r) {
				return
			}
		}
	}
}

// WholeSnapshot returns a part without removed rows.
func WholeSnapshot(s *Segment) Part { return Part{Segment: s, Words: int64(s.Image.Words)} }

// memoryPart does the same for a segment in memory.
func memoryPart(s *Segment) Part {
	p := WholeSnapshot(s)
	for r := range int32(s.Rows) {
		row := s.Row(r)
		p.Logged += row.Size(s.VectorsOf(r))
	}
	return p
}

// Df is the number of live rows that have a word.
func (p *Part) Df(term int32) int {
	from, to := p.Terms.Extent(int(term), int(term)+1)
	df := to - from
	if p.Gone != nil {
		df -= int(p.Gone[term])
	}
	return df
}

// Find returns the live row with an id, or -1.
func (p *Part) Find(hash uint64, id string) int32 {
	if r := p.Segment.Find(hash, id); r >= 0 && !p.Dead.Has(r) {
		return r
	}
	return -1
}

// With returns a snapshot of the same collection with other parts. It drops parts without live rows.
func (s *Snapshot) With(parts []Part) *Snapshot {
	next := &Snapshot{Dimension: s.Dimension, Analyzer: s.Analyzer}
	for _, p := range parts {
		if p.Live() == 0 {
			continue
		}
		p.Base = int32(next.Rows)
		next.Rows += p.Segment.Rows
		next.Live += p.Live()
		next.Words += p.Words
		next.Parts = append(next.Parts, p)
	}
	return next
}

// At returns the part of a row, and the row's position there.
func (s *Snapshot) At(row int32) (*Part, int32) {
	i := sort.Search(len(s.Parts), func(i int) bool { return s.Parts[i].Base > row }) - 1
	return &s.Parts[i], row - s.Parts[i].Base
}

// IDOf returns the id of a row.
func (s *Snapshot) IDOf(row int32) string {
	p, r := s.At(row)
	return p.ID(r)
}

// Find returns the live row with an id.
func (s *Snapshot) Find(id string) (*Part, int32, bool) {
	h := Hash(id)
	for i := len(s.Parts) - 1; i >= 0; i-- {
		if r := s.Parts[i].Find(h, id); r >= 0 {
			return &s.Parts[i], r, true
		}
	}
	return nil, 0, false
}

// Dot returns the product of a query and the vector of a row.
func (s *Snapshot) Dot(k *simd.Kernel, query []float32, row int32) float32 {
	p, r := s.At(row)
	return p.vectors.dot(k, query, int(r))
}

// VerifyRest compares the checksums that opening the files skips.
func (s *Snapshot) VerifyRest() error {
	for i := range s.Parts {
		if err := s.Parts[i].VerifyRest(); err != nil {
			return err
		}
	}
	return nil
}

// MergeDue returns the first part that should be merged with all later parts; -1: none. A part is due if more of its
// rows are removed than live, or if the later parts have as many rows as it has. So each part has more rows than all
// later parts together, and a row is copied once each time that its part doubles.
func MergeDue(parts []Part) (first int) {
	first = -1
	behind := 0
	for i := len(parts) - 1; i >= 0; i-- {
		live := parts[i].Live()
		if parts[i].Removed > live || behind >= live && i < len(parts)-1 {
			first = i
		}
		behind += live
	}
	return first
}

// settle merges the parts in memory that are due for a merge.
func (s *Snapshot) settle(parts []Part) ([]Part, error) {
	parts = withoutEmpty(parts)
	files := SnapshotFiles(parts)
	first := MergeDue(parts[files:])
	if first < 0 {
		return parts, nil
	}
	merged, err := s.InMemory(Inputs(parts[files+first:]))
	if err != nil {
		return nil, err
	}
	return append(parts[:files+first], memoryPart(merged)), nil
}

func withoutEmpty(parts []Part) []Part {
	return slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Live() == 0 })
}

// SnapshotFiles is the number of parts in files. They come first.
func SnapshotFiles(parts []Part) int {
	n := slices.IndexFunc(parts, func(p Part) bool { return p.Path == "" })
	if n < 0 {
		return len(parts)
	}
	return n
}

// Inputs returns the live rows of parts as inputs.
func Inputs(parts []Part) []Input {
	inputs := make([]Input, 0, len(parts))
	for i := range parts {
		if parts[i].Live() > 0 {
			inputs = append(inputs, Input{Source: parts[i].Segment, Dead: parts[i].Dead})
		}
	}
	return inputs
}
