package search

import (
	"math/bits"
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

// compare takes the probes over a block of sparse vectors.
func (s *sparseSums) compare(leg *DenseLeg, b block, probes []probe) {
	to, width := min(b.from+blockRows, b.part.Segment.Rows), s.queries.Cols
	off := float32(RoundingError(leg.of.Dimension))
	for from := b.from; from < to; from += passRows {
		n := min(passRows, to-from)
		clear(s.sums)
		for i := range n {
			of, at := b.part.VectorsOf(int32(from + i))
			leg.kernel.AddRows(s.sums[i*width:][:width], s.queries, of.NumbersAt(at))
		}
		for q := range probes {
			wanted := probes[q].wanted(b, from)
			if n < passRows {
				wanted &= 1<<n - 1
			}
			for ; wanted != 0; wanted &= wanted - 1 {
				i := bits.TrailingZeros64(wanted)
				probes[q].offer(leg, s.sums[i*width+q], off, b.part.Base+int32(from+i))
			}
		}
	}
}
