package search

import (
	"slices"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/plugins/internal/store/segment"
)

// This file compares queries with sparse vectors: some vectors with all queries at a time, since a number that is not 0
// is multiplied by the same place of each query at once.

// sparseSums are the products of some neighbouring sparse vectors with all probes.
type sparseSums struct {
	queries simd.View // a column for each probe; empty: no part has sparse vectors
	sums    []float32 // a row for each vector
}

// newSparseSums has room for the products of probes with vectors of a snapshot.
func newSparseSums(of *segment.Snapshot, probes []probe) *sparseSums {
	s := &sparseSums{}
	if !slices.ContainsFunc(of.Parts, func(p segment.Part) bool { return p.Sparse }) {
		return s
	}
	width := (len(probes) + simd.RowBlock - 1) / simd.RowBlock * simd.RowBlock
	s.sums = make([]float32, passRows*width)
	s.queries = simd.NewView(make([]float32, of.Dimension*width), of.Dimension, width)
	for i, p := range probes {
		for j, x := range p.exact {
			if x != 0 {
				s.queries.Data[j*width+i] = x
			}
		}
	}
	return s
}

// of computes the products with the vectors of a pass.
func (s *sparseSums) of(k *simd.Kernel, b block, from int) {
	if !b.part.Sparse {
		return
	}
	clear(s.sums)
	width := s.queries.Cols
	for i := range min(passRows, b.part.Segment.Rows-from) {
		of, at := b.part.VectorsOf(int32(from + i))
		k.AddRows(s.sums[i*width:][:width], s.queries, of.NumbersAt(at))
	}
}

// column is the products of one probe.
type column struct {
	sums  []float32
	width int
}

func (s *sparseSums) column(probe int) column {
	if len(s.sums) == 0 {
		return column{}
	}
	return column{s.sums[probe:], s.queries.Cols}
}

func (c column) at(i int) float32 { return c.sums[i*c.width] }
