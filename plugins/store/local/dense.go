package local

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/simd"
)

var negativeInfinity = float32(math.Inf(-1))

const (
	// queryGroup is how many queries pass over the vectors at a time.
	queryGroup = 64
	// productFrom is the number of queries from which a matrix product, which
	// packs them first, is faster than single dot products.
	productFrom = 3
)

// nearest returns for each query the depth rows of highest cosine, best first.
// The queries are normalised; an empty one finds nothing.
func (t *table) nearest(ctx context.Context, queries [][]float32, depth int) ([][]scored, error) {
	found := make([][]scored, len(queries))
	var asked []int
	for i, q := range queries {
		if len(q) > 0 {
			asked = append(asked, i)
		}
	}
	for len(asked) > 0 {
		group := asked[:min(queryGroup, len(asked))]
		asked = asked[len(group):]
		packed := make([]float32, 0, len(group)*t.dimension)
		for _, i := range group {
			packed = append(packed, queries[i]...)
		}
		tops, err := t.scan(ctx, packed, len(group), depth)
		if err != nil {
			return nil, err
		}
		for j, i := range group {
			// The product of many queries and the dot product of one differ in the
			// last digits; a hit's score is always the latter.
			for k, s := range tops[j].heap {
				tops[j].heap[k].score = t.vectors.cosine(queries[i], s.row)
			}
			found[i] = tops[j].sorted()
		}
	}
	return found, nil
}

// scan compares n queries with all vectors, a block at a time on every core.
func (t *table) scan(ctx context.Context, queries []float32, n, depth int) ([]top, error) {
	blocks := t.vectors.blocks
	var product *simd.Matrix
	if n >= productFrom {
		product = t.vectors.kernel.NewMatrix().PackRows(simd.NewView(queries, n, t.dimension), nil)
	}
	workers := max(1, min(runtime.GOMAXPROCS(0), len(blocks)))
	results := make([][]top, workers)
	var next atomic.Int64
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			s := scanner{table: t, queries: queries, product: product, tops: newTops(t.rows, n, depth)}
			for ctx.Err() == nil {
				b := int(next.Add(1)) - 1
				if b >= len(blocks) {
					break
				}
				s.block(int32(b*blockRows), blocks[b])
			}
			results[w] = s.tops
		})
	}
	running.Wait()
	tops := results[0]
	for _, more := range results[1:] {
		for i := range tops {
			tops[i].merge(&more[i])
		}
	}
	return tops, ctx.Err()
}

func newTops(rows []row, n, depth int) []top {
	tops := make([]top, n)
	for i := range tops {
		tops[i] = top{rows: rows, depth: min(depth, len(rows))}
	}
	return tops
}

// scanner is the work of one goroutine of a scan.
type scanner struct {
	table   *table
	queries []float32
	product *simd.Matrix // nil: few queries
	scores  []float32
	scratch simd.Scratch
	tops    []top
}

// block compares the queries with the vectors of one block, whose first row is
// given.
func (s *scanner) block(first int32, vectors []float32) {
	n, dimension := len(s.tops), s.table.dimension
	count := len(vectors) / dimension
	if s.product == nil {
		for j := range s.tops {
			query, best := s.queries[j*dimension:][:dimension], &s.tops[j]
			floor := best.floor()
			for i := range count {
				score := s.table.vectors.kernel.Dot(query, vectors[i*dimension:][:dimension])
				if score >= floor {
					best.offer(scored{score, first + int32(i)})
					floor = best.floor()
				}
			}
		}
		return
	}
	if s.scores == nil {
		s.scores = make([]float32, blockRows*n)
	}
	s.product.Mul(simd.NewView(s.scores, count, n), simd.NewView(vectors, count, dimension), &s.scratch)
	for j := range s.tops {
		best := &s.tops[j]
		floor := best.floor()
		for i := range count {
			if score := s.scores[i*n+j]; score >= floor {
				best.offer(scored{score, first + int32(i)})
				floor = best.floor()
			}
		}
	}
}
