package snapshot

import (
	"errors"
	"slices"

	"github.com/racflow/racflow/plugins/store/local/internal/image"
	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/plugins/store/local/internal/segment"
	"github.com/racflow/racflow/sdk/analyze"
)

// Remover removes rows from parts that others may be reading: it copies what it
// changes.
type remover struct {
	Parts    []Part
	owned    []bool
	analyzer *analyze.Analyzer
	words    []string
}

// NewRemover leaves the parts given as they are. A nil analyzer is none.
func NewRemover(parts []Part, analyzer *analyze.Analyzer) *remover {
	return &remover{Parts: slices.Clone(parts), owned: make([]bool, len(parts)), analyzer: analyzer}
}

// Add takes in another part, behind the others.
func (r *remover) Add(p Part) {
	r.Parts, r.owned = append(r.Parts, p), append(r.owned, false)
}

// Remove removes the row with an id, if there is one.
func (r *remover) Remove(id string) {
	h := segment.Hash(id)
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
			p.Dead = row.NewSet(p.Segment.Rows)
		}
		if p.Gone == nil && r.analyzer != nil {
			p.Gone = make([]uint32, p.Terms.Len())
		}
	}
	p.Dead.Add(at)
	p.Removed++
	row := p.Row(at)
	if p.Path == "" {
		p.Logged -= row.Size(p.Dimension)
	}
	if r.analyzer == nil {
		return
	}
	r.words = segment.AppendWords(r.words[:0], *r.analyzer, row.Context, row.Text)
	p.Words -= int64(p.Lengths[at])
	slices.Sort(r.words)
	for _, w := range slices.Compact(r.words) {
		if term := p.Terms.Find(segment.Hash(w), w); term >= 0 {
			p.Gone[term]++
		}
	}
}

// Staged is changes on their way into a snapshot.
type Staged struct {
	Rows  segment.Draft // put, and in no segment yet
	Parts *remover      // that the rows came after, and are taken out of
}

// NewStaged has no changes yet. A nil analyzer is none.
func NewStaged(parts []Part, analyzer *analyze.Analyzer) *Staged {
	return &Staged{Parts: NewRemover(parts, analyzer)}
}

// Apply adds a change.
func (s *Staged) Apply(one row.Change) {
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

// Append returns the parts with the rows of a draft in memory behind them, merged
// where that is due.
func (s *Snapshot) Append(parts []Part, rows *segment.Draft) ([]Part, error) {
	if len(rows.Positions) > 0 {
		fresh, err := s.InMemory([]segment.Input{{Source: rows.Source(s.Analyzer)}})
		if err != nil {
			return nil, err
		}
		parts = append(parts, memoryPart(fresh))
	}
	return s.settle(parts)
}

// InMemory builds a segment in memory.
func (s *Snapshot) InMemory(inputs []segment.Input) (*segment.Segment, error) {
	var m image.Memory
	if err := segment.Build(image.NewWriter(&m), 0, s.Dimension, s.Analyzer != nil, inputs); err != nil {
		return nil, err
	}
	made, err := segment.New(image.Aligned(m.Bytes), "")
	if err != nil {
		return nil, errors.Join(errors.New("a segment in memory cannot be read back"), err)
	}
	return made, nil
}
