package snapshot

import (
	"errors"

	"github.com/racflow/racflow/sdk/analyze"

	"github.com/racflow/racflow/plugins/store/local/internal/image"
	"github.com/racflow/racflow/plugins/store/local/internal/row"
	"github.com/racflow/racflow/plugins/store/local/internal/segment"
)

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

// Append returns the parts and the rows of a draft in memory behind them, merged
// where it is time.
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
