package search

import (
	"math/bits"
	"slices"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/plugins/internal/store/segment"
)

// This file compares queries with sparse vectors. It compares a vector with all queries at once: each non-zero number
// is multiplied by that dimension of every query.

// sparseQueries returns the queries of probes, one per column; empty: no part has sparse vectors.
func sparseQueries(of *segment.Snapshot, probes []probe) (queries simd.View) {
	if !slices.ContainsFunc(of.Parts, func(p segment.Part) bool { return p.Sparse }) {
		return queries
	}
	width := (len(probes) + simd.RowBlock - 1) / simd.RowBlock * simd.RowBlock
	queries = simd.NewView(make([]float32, of.Dimension*width), of.Dimension, width)
	for i, p := range probes {
		for j, x := range p.exact {
			if x != 0 {
				queries.Data[j*width+i] = x
			}
		}
	}
	return queries
}

// compareSparse compares the probes with a block of sparse vectors. sums has room for the products with the rows of a
// pass.
func (s *denseLeg) compareSparse(b block, probes []probe, queries simd.View, sums []float32) {
	to, width := min(b.from+blockRows, b.part.Segment.Rows), queries.Cols
	off := float32(roundingError(s.of.Dimension))
	for from := b.from; from < to; from += passRows {
		clear(sums)
		for i := range min(passRows, to-from) {
			of, at := b.part.VectorsOf(int32(from + i))
			s.kernel.AddRows(sums[i*width:][:width], queries, of.NumbersAt(at))
		}
		for q := range probes {
			for wanted := probes[q].wanted(b, from); wanted != 0; wanted &= wanted - 1 {
				i := bits.TrailingZeros64(wanted)
				probes[q].offer(s, sums[i*width+q], off, b.part.Base+int32(from+i))
			}
		}
	}
}
