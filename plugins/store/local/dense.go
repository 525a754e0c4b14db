package local

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

var negativeInfinity = float32(math.Inf(-1))

const (
	// queryGroup is how many queries pass over the vectors at a time.
	queryGroup = 64
	// pendingRows bounds the rows that a probe puts off, and so its memory.
	pendingRows = 4096
)

// nearest returns for each query the depth rows of highest cosine, best first.
// The queries are normalised; an empty one finds nothing.
func (t *table) nearest(ctx context.Context, queries [][]float32, depth int) ([][]scored, error) {
	asked := make([]probe, 0, len(queries))
	for i, q := range queries {
		if len(q) > 0 {
			asked = append(asked, t.newProbe(i, q, depth))
		}
	}
	for group := range slices.Chunk(asked, queryGroup) {
		if err := t.scan(ctx, group); err != nil {
			return nil, err
		}
	}
	found := make([][]scored, len(queries))
	for i := range asked {
		found[asked[i].number] = asked[i].best.sorted()
	}
	return found, nil
}

// scan passes all blocks by the probes, on every core.
func (t *table) scan(ctx context.Context, probes []probe) error {
	blocks := int64(len(t.vectors.blocks))
	workers := make([][]probe, min(runtime.GOMAXPROCS(0), int(blocks)))
	var next atomic.Int64
	var running sync.WaitGroup
	for w := range workers {
		workers[w] = slices.Clone(probes)
		running.Go(func() {
			dots := make([]int32, passRows)
			for b := next.Add(1) - 1; b < blocks && ctx.Err() == nil; b = next.Add(1) - 1 {
				for from := 0; from < t.vectors.rows(int(b)); from += passRows {
					for i := range workers[w] {
						workers[w][i].pass(&t.vectors, int(b), from, dots)
					}
				}
			}
			for i := range workers[w] {
				workers[w][i].settle(&t.vectors)
			}
		})
	}
	running.Wait()
	for _, found := range workers {
		for i := range found {
			probes[i].best.merge(&found[i].best)
		}
	}
	return ctx.Err()
}

// probe is one query on its way over the vectors. Only rows that their coarse
// vectors do not rule out are scored in full, and as late as possible, because
// by then fewer are left. The result is that of scoring every row in full.
type probe struct {
	number int // of the query
	exact  []float32
	coarse []int8
	// The cosine is the dot product of the coarse vectors times both scales, give
	// or take slope times what the row lost plus slack.
	scale, slope, slack float32

	best    top      // by cosine, of the rows scored in full
	sure    top      // by the least that the cosine can be
	pending []scored // by the most that the cosine can be
}

// newProbe prepares a query. With the query q = q' + e and the row x = x' + f,
// where q' and x' are what the coarse vectors stand for,
//
//	|q·x - q'·x'| = |q·f + e·x - e·f| <= |f|·(1 + |e|) + |e|
//
// by Cauchy and Schwarz, since q has norm 1 and x 1 or 0. On top comes what
// float32 arithmetic may be off by: n·2⁻²⁴ for a product of n terms, and the
// same again for the norms, the lengths and the bounds themselves.
func (t *table) newProbe(number int, query []float32, depth int) probe {
	p := probe{number: number, exact: query, coarse: make([]int8, width(t.dimension))}
	var lost float32
	p.scale, lost = t.vectors.kernel.Quantise(p.coarse, query)
	p.slope = 1 + lost
	p.slack = lost + float32(t.dimension+32)/(1<<23)
	p.best = top{rows: t.rows, depth: min(depth, len(t.rows))}
	p.sure = p.best
	return p
}

// pass looks at the vectors of one block, passRows of them at most.
func (p *probe) pass(v *vectors, block, from int, dots []int32) {
	first, to := int32(block*blockRows+from), min(from+passRows, v.rows(block))
	if !v.coarse() {
		for i := range to - from {
			p.score(v, first+int32(i))
		}
		return
	}
	b, size := &v.blocks[block], len(p.coarse)
	dots = dots[:to-from]
	v.kernel.DotInt8(dots, p.coarse, b.coarse[from*size:to*size])
	floor := p.floor()
	for i, g := range b.grids[from:to] {
		middle, reach := float32(dots[i])*p.scale*g.scale, p.slope*g.lost+p.slack
		if middle+reach < floor {
			continue
		}
		row := first + int32(i)
		p.sure.offer(scored{middle - reach, row})
		p.pending = append(p.pending, scored{middle + reach, row})
		if len(p.pending) == pendingRows {
			p.settle(v)
		}
		floor = p.floor()
	}
}

// settle scores the pending rows that may still be among the best.
func (p *probe) settle(v *vectors) {
	floor := p.floor()
	p.pending = slices.DeleteFunc(p.pending, func(s scored) bool { return s.score < floor })
	slices.SortFunc(p.pending, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	for _, s := range p.pending {
		if s.score < p.floor() {
			break
		}
		p.score(v, s.row)
	}
	p.pending = p.pending[:0]
}

// score offers a row with its cosine.
func (p *probe) score(v *vectors, row int32) {
	if score := v.cosine(p.exact, row); score >= p.best.floor() {
		p.best.offer(scored{score, row})
	}
}

// floor is the cosine that a row must reach to be among the best.
func (p *probe) floor() float32 { return max(p.best.floor(), p.sure.floor()) }
