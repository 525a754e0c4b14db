package snapshot

import (
	"iter"
	"sort"

	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/plugins/store/local/internal/segment"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

// Snapshot is the rows of a collection at one commit. It does not change: a commit
// makes another one, which shares the segments.
type Snapshot struct {
	Dimension int
	Analyzer  *analyze.Analyzer // nil: no lexical leg

	// Parts stand in the order of their sequence numbers, those in files before
	// those in memory.
	Parts []Part
	Rows  int // removed ones too; a row's number is its part's base and its position there
	Live  int
	Words int64 // of the live rows
}

// Empty returns a snapshot without rows.
func Empty(schema sdk.Schema) (*Snapshot, error) {
	s := &Snapshot{Dimension: schema.Dimension}
	if schema.Analyzer != "" {
		analyzer, err := analyze.Named(schema.Analyzer)
		if err != nil {
			return nil, sdk.Invalid(err)
		}
		s.Analyzer = &analyzer
	}
	return s, nil
}

// Part is a segment and which of its rows were removed since it was made.
type Part struct {
	*segment.Segment
	Base    int32
	Dead    row.Set // nil: none
	Removed int
	Words   int64    // of the live rows
	Gone    []uint32 // by word: removed rows that have it; nil: none
	Logged  int64    // in memory: bytes that the live rows take in a log
}

// Live is the number of rows that were not removed.
func (p *Part) Live() int { return p.Segment.Rows - p.Removed }

// LiveRows are the rows that were not removed, rising.
func (p *Part) LiveRows() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for r := range int32(p.Segment.Rows) {
			if !p.Dead.Has(r) && !yield(r) {
				return
			}
		}
	}
}

// Whole is a segment of which nothing was removed.
func Whole(s *segment.Segment) Part { return Part{Segment: s, Words: int64(s.Image.Words)} }

// memoryPart is the same for a segment in memory.
func memoryPart(s *segment.Segment) Part {
	p := Whole(s)
	for r := range int32(s.Rows) {
		row := s.Row(r)
		p.Logged += row.Size(s.Dimension)
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

// With returns a snapshot of the same collection with other parts. Parts without
// live rows are left out.
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

// At returns the part that a row is in, and its position there.
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
	h := segment.Hash(id)
	for i := len(s.Parts) - 1; i >= 0; i-- {
		if r := s.Parts[i].Find(h, id); r >= 0 {
			return &s.Parts[i], r, true
		}
	}
	return nil, 0, false
}

// Vector returns the vector of a row.
func (s *Snapshot) Vector(row int32) []float32 {
	p, r := s.At(row)
	return p.Vector(r)
}

// VerifyRest compares the checksums that opening the files leaves out.
func (s *Snapshot) VerifyRest() error {
	for i := range s.Parts {
		if err := s.Parts[i].VerifyRest(); err != nil {
			return err
		}
	}
	return nil
}
