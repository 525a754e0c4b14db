package search

import (
	"cmp"
	"context"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/plugins/internal/store/segment"
)

// This file is the dense leg of a search: it finds the rows of highest cosine, exactly. A scan of int8 codes rules
// out most rows by an error bound, and the vectors decide among the rest. The result is the same as if the query was
// compared with every vector.

const (
	// queryGroup is how many queries are compared with the vectors at a time.
	queryGroup = 64
	// coreQueries is the number of queries per core from which on each core takes some of the queries and reads all
	// vectors. With fewer queries, each core takes some of the vectors.
	coreQueries = 16
	// pendingRows bounds the rows that a probe has not scored yet, and so the probe's memory.
	pendingRows = 4096
	// blockRows is the number of vectors that a worker takes at a time.
	blockRows = 256
	// workerBlocks is the number of blocks times queries that justifies another worker: each worker starts without a
	// score to beat.
	workerBlocks = 24
	// passRows is the number of vectors that one query is compared with before the next query's turn. The codes then
	// stay in the first-level cache, and one word of a segment.RowSet covers them.
	passRows = simd.GroupRows
	// groupedQueries is the number of queries from which on packing rows for them is worthwhile.
	groupedQueries = 8
	// fewRows is the number of selected vectors up to which a pass does not use the codes.
	fewRows = 6
)

// denseLeg searches the vectors of a snapshot. It is safe for concurrent use.
type denseLeg struct {
	of     *segment.Snapshot
	kernel *simd.Kernel
}

// newDenseLeg returns the dense leg of a snapshot; kernel computes the products.
func newDenseLeg(of *segment.Snapshot, kernel *simd.Kernel) *denseLeg {
	return &denseLeg{of: of, kernel: kernel}
}

// cosine returns the cosine of a normalised query and a row.
func (s *denseLeg) cosine(query []float32, row int32) float32 {
	return s.of.Dot(s.kernel, query, row)
}

// Search returns, for each query, the depth selected rows of highest cosine, best first. The queries are normalised;
// an empty query finds nothing.
func (s *denseLeg) Search(ctx context.Context, queries [][]float32, among []selection, depth int) ([][]scored, error) {
	asked := make([]probe, 0, len(queries))
	for i, q := range queries {
		if len(q) > 0 {
			asked = append(asked, s.newProbe(i, q, among[i], depth))
		}
	}
	if err := s.scanAll(ctx, asked); err != nil {
		return nil, err
	}
	found := make([][]scored, len(queries))
	for i := range asked {
		found[asked[i].number] = asked[i].best.sorted()
	}
	return found, nil
}

// scanAll compares the probes with all blocks, on every core. If there are enough probes, each core takes some of
// them, so that no probe has to find a score to beat twice. Otherwise each core takes some of the blocks.
func (s *denseLeg) scanAll(ctx context.Context, probes []probe) error {
	cores := runtime.GOMAXPROCS(0)
	if len(probes) < cores*coreQueries {
		for group := range slices.Chunk(probes, queryGroup) {
			if err := s.scan(ctx, group, cores); err != nil {
				return err
			}
		}
		return nil
	}
	rounds := (len(probes)-1)/(cores*queryGroup) + 1
	groups := slices.Collect(slices.Chunk(probes, (len(probes)-1)/(cores*rounds)+1))
	return eachScored(ctx, len(groups), func(i int) { _ = s.scan(ctx, groups[i], 1) })
}

// block is a range of adjacent rows of a part.
type block struct {
	part *segment.Part
	at   int // index of the part
	from int
}

// scan compares the probes with all blocks, on the given number of cores. Its error is the context's.
func (s *denseLeg) scan(ctx context.Context, probes []probe, cores int) error {
	var blocks []block
	for i := range s.of.Parts {
		for from := 0; from < s.of.Parts[i].Segment.Rows; from += blockRows {
			blocks = append(blocks, block{&s.of.Parts[i], i, from})
		}
	}
	if len(blocks) == 0 {
		return ctx.Err()
	}
	workers := make([][]probe, min(cores, 1+len(blocks)*len(probes)/workerBlocks))
	var next atomic.Int64
	group, queries := s.grouped(probes), sparseQueries(s.of, probes)
	work := func(w int) {
		var packed []int8
		if group != nil {
			packed = make([]int8, passRows*segment.CodeWidth(s.of.Dimension))
		}
		sums := make([]float32, passRows*queries.Cols)
		for b := int(next.Add(1)) - 1; b < len(blocks) && ctx.Err() == nil; b = int(next.Add(1)) - 1 {
			if blocks[b].part.Sparse {
				s.compareSparse(blocks[b], workers[w], queries, sums)
			} else {
				s.compare(blocks[b], workers[w], group, packed)
			}
		}
		for i := range workers[w] {
			workers[w][i].settle(s)
		}
	}
	var running sync.WaitGroup
	workers[0] = probes
	for w := 1; w < len(workers); w++ {
		workers[w] = slices.Clone(probes)
	}
	for w := 1; w < len(workers); w++ {
		running.Go(func() { work(w) })
	}
	work(0)
	running.Wait()
	for _, found := range workers[1:] {
		for i := range found {
			probes[i].best.Merge(&found[i].best)
		}
	}
	return ctx.Err()
}

// compare compares the probes with a block. If the probes are a group, packed has room for the block's rows. The code
// without a group has its own small buffer for products: with a group's buffer, a single query would take a tenth
// longer.
func (s *denseLeg) compare(b block, probes []probe, group *simd.Group, packed []int8) {
	to := min(b.from+blockRows, b.part.Segment.Rows)
	if group == nil {
		var dots [passRows]int32
		for from := b.from; from < to; from += passRows {
			for i := range probes {
				probes[i].pass(s, b, from, dots[:min(passRows, to-from)], false)
			}
		}
		return
	}
	var dots [simd.GroupSize * passRows]int32
	for from := b.from; from < to; from += passRows {
		together := from+passRows <= to
		if together {
			group.Pack(packed, b.part.Codes[from*len(packed)/passRows:][:len(packed)])
		}
		for i := range probes {
			at := i % simd.GroupSize * passRows
			if together && at == 0 {
				group.Dot(&dots, i, packed)
			}
			probes[i].pass(s, b, from, dots[at:at+min(passRows, to-from)], together)
		}
	}
}

// grouped returns the group of the probes. It returns nil if the kernel has none, if there are few probes, or if a
// probe searches only some rows, which takes fewer products.
func (s *denseLeg) grouped(probes []probe) *simd.Group {
	if len(probes) < groupedQueries || slices.ContainsFunc(probes, func(p probe) bool { return p.among != nil }) {
		return nil
	}
	queries := make([][]int8, len(probes))
	for i := range probes {
		queries[i] = probes[i].codes
	}
	return s.kernel.NewGroup(queries)
}

// probe is the state of one query. It computes a row's full score only if the int8 codes do not rule the row out, and
// as late as possible, since fewer rows are then left. The result is the same as if every row was scored in full.
type probe struct {
	number int // of the query
	exact  []float32
	codes  []int8 // nil: plain Go, where bytes are no faster than floats
	among  selection
	bound  simd.Bound // of the cosine of a row

	best    top      // by cosine, of the rows with a full score
	sure    top      // lower bounds of the cosines of different rows
	pending []scored // by the upper bound of the cosine
}

// newProbe prepares a query. The int8 codes stand for q' and x'. With the query q = q' + e and the row x = x' + f,
//
//	|q·x - q'·x'| = |q·f + e·x - e·f| <= |f|·(1 + |e|) + |e|
//
// by Cauchy and Schwarz, since q has norm 1 and x 1 or 0. The rounding error of
// float32 is added: n·2⁻²⁴ for a product of n terms, and the same again for the
// norms, the lengths and the bounds themselves.
func (s *denseLeg) newProbe(number int, query []float32, among selection, depth int) probe {
	p := probe{number: number, exact: query, among: among}
	if s.kernel != simd.Portable() {
		p.codes = make([]int8, segment.CodeWidth(s.of.Dimension))
		scale, lost := s.kernel.Quantise(p.codes, query)
		p.bound = simd.Bound{Scale: scale, Slope: 1 + lost, Slack: lost + float32(roundingError(s.of.Dimension))}
	}
	p.best = top{Of: s.of, Depth: min(depth, s.of.Rows)}
	p.sure.Depth = p.best.Depth
	return p
}

// roundingError bounds the error of float32 arithmetic in n dimensions.
func roundingError(n int) float64 { return float64(n+32) / (1 << 23) }

// wanted returns a bit for each of the 64 rows from a position on: set if the row exists and is searched.
func (p *probe) wanted(b block, from int) uint64 {
	there := ^uint64(0)
	if n := b.part.Segment.Rows - from; n < 64 {
		there = 1<<n - 1
	}
	switch {
	case p.among != nil:
		return there & p.among[b.at][from/64]
	case b.part.Dead != nil:
		return there &^ b.part.Dead[from/64]
	}
	return there
}

// pass compares the query with vectors of a block. dots receives the products of their codes, or has them if known is
// set.
func (p *probe) pass(s *denseLeg, b block, from int, dots []int32, known bool) {
	wanted, n := p.wanted(b, from), len(dots)
	if wanted == 0 {
		return
	}
	first := b.part.Base + int32(from)
	if p.codes == nil || p.among != nil && bits.OnesCount64(wanted) <= fewRows {
		for ; wanted != 0; wanted &= wanted - 1 {
			i := bits.TrailingZeros64(wanted)
			p.score(s, first+int32(i))
		}
		return
	}
	if !known {
		s.kernel.DotInt8(dots, p.codes, b.part.Codes[from*len(p.codes):][:n*len(p.codes)])
	}
	rows := b.part.Quantisations[from : from+n]
	p.bound.Least = p.floor()
	for may := s.kernel.Reach(dots, rows, &p.bound) & wanted; may != 0; may &= may - 1 {
		i := bits.TrailingZeros64(may)
		estimate, off := p.bound.Of(dots[i], rows[i])
		p.offer(s, estimate, off, first+int32(i))
	}
}

// offer adds a row whose cosine differs from the estimate by at most off.
func (p *probe) offer(s *denseLeg, estimate, off float32, row int32) {
	if estimate+off < p.floor() {
		return
	}
	p.sure.offer(scored{Score: estimate - off})
	p.pending = append(p.pending, scored{Score: estimate + off, Row: row})
	if len(p.pending) == pendingRows {
		p.settle(s)
	}
}

// settle scores the pending rows that may still be among the best.
func (p *probe) settle(s *denseLeg) {
	floor := p.floor()
	p.pending = slices.DeleteFunc(p.pending, func(s scored) bool { return s.Score < floor })
	slices.SortFunc(p.pending, func(a, b scored) int { return cmp.Compare(b.Score, a.Score) })
	for _, pending := range p.pending {
		if pending.Score < p.floor() {
			break
		}
		p.score(s, pending.Row)
	}
	p.pending = p.pending[:0]
}

// score adds a row with its cosine, which is 0 for a zero vector.
func (p *probe) score(s *denseLeg, row int32) {
	if score := s.of.Dot(s.kernel, p.exact, row); score >= p.best.floor() {
		p.best.offer(scored{Score: score, Row: row})
	}
}

// floor is the cosine that a row must reach to be among the best.
func (p *probe) floor() float32 { return max(p.best.floor(), p.sure.floor()) }
