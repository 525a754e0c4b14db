package search

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/store/segment"
)

// This file keeps the best rows of a search, with ties broken by id, and divides work among the cores.

// scored is a row with its score.
type scored struct {
	Score float32
	Row   int32
}

// top keeps the best of the offered rows, in a heap with the worst of them at the root. In a tie the smaller id wins.
type top struct {
	Of    *segment.Snapshot // nil: any row may win a tie
	Depth int
	Heap  []scored
}

// floor is the score below which a row need not be offered.
func (t *top) floor() float32 {
	if len(t.Heap) < t.Depth {
		return float32(math.Inf(-1))
	}
	return t.Heap[0].Score
}

// offer adds a live row, unless all kept rows are better.
func (t *top) offer(s scored) {
	full := len(t.Heap) == t.Depth
	if full && !t.worse(t.Heap[0], s) {
		return
	}
	if !full {
		t.Heap = append(t.Heap, s)
		for i := len(t.Heap) - 1; i > 0; {
			up := (i - 1) / 2
			if !t.worse(t.Heap[i], t.Heap[up]) {
				return
			}
			t.Heap[up], t.Heap[i] = t.Heap[i], t.Heap[up]
			i = up
		}
		return
	}
	t.Heap[0] = s
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(t.Heap) {
			return
		}
		if r := down + 1; r < len(t.Heap) && t.worse(t.Heap[r], t.Heap[down]) {
			down = r
		}
		if !t.worse(t.Heap[down], t.Heap[i]) {
			return
		}
		t.Heap[i], t.Heap[down] = t.Heap[down], t.Heap[i]
		i = down
	}
}

// Merge adds the rows that another top of the same snapshot kept.
func (t *top) Merge(other *top) {
	for _, s := range other.Heap {
		t.offer(s)
	}
}

// sorted returns the kept rows, best first. It destroys the heap.
func (t *top) sorted() []scored {
	slices.SortFunc(t.Heap, t.Compare)
	return t.Heap
}

// Compare is negative if a is better than b.
func (t *top) Compare(a, b scored) int {
	if a.Score > b.Score {
		return -1
	}
	if a.Score < b.Score {
		return 1
	}
	if t.Of == nil {
		return 0
	}
	return cmp.Compare(t.Of.IDOf(a.Row), t.Of.IDOf(b.Row))
}

// worse is an inlined Compare for the usual case that the scores decide.
func (t *top) worse(a, b scored) bool {
	return a.Score < b.Score || a.Score == b.Score && t.Compare(a, b) > 0
}

// eachScored calls do for the numbers below n, on every core.
func eachScored(ctx context.Context, n int, do func(i int)) error {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var running sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		running.Go(work)
	}
	work()
	running.Wait()
	return ctx.Err()
}
