package local

import (
	"cmp"
	"slices"
)

// scored is a row with its score.
type scored struct {
	score float32
	row   int32
}

// top keeps the best of the rows that it is offered, in a heap with the worst
// of them at the root. Ties go to the smaller id.
type top struct {
	of    *snapshot
	depth int
	heap  []scored
}

// floor is the score that a row must reach to be worth offering.
func (t *top) floor() float32 {
	if len(t.heap) < t.depth {
		return negativeInfinity
	}
	return t.heap[0].score
}

// offer takes a living row in, unless all that is kept is better.
func (t *top) offer(s scored) {
	full := len(t.heap) == t.depth
	if full && t.compare(s, t.heap[0]) >= 0 {
		return
	}
	if !full {
		t.heap = append(t.heap, s)
		for i := len(t.heap) - 1; i > 0; {
			up := (i - 1) / 2
			if t.compare(t.heap[up], t.heap[i]) >= 0 {
				return
			}
			t.heap[up], t.heap[i] = t.heap[i], t.heap[up]
			i = up
		}
		return
	}
	t.heap[0] = s
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(t.heap) {
			return
		}
		if r := down + 1; r < len(t.heap) && t.compare(t.heap[r], t.heap[down]) > 0 {
			down = r
		}
		if t.compare(t.heap[down], t.heap[i]) <= 0 {
			return
		}
		t.heap[i], t.heap[down] = t.heap[down], t.heap[i]
		i = down
	}
}

// merge takes in what another top of the same snapshot kept.
func (t *top) merge(other *top) {
	for _, s := range other.heap {
		t.offer(s)
	}
}

// sorted returns what was kept, best first. The heap is gone then.
func (t *top) sorted() []scored {
	slices.SortFunc(t.heap, t.compare)
	return t.heap
}

// compare is negative if a is better than b.
func (t *top) compare(a, b scored) int {
	if a.score > b.score {
		return -1
	}
	if a.score < b.score {
		return 1
	}
	return cmp.Compare(t.of.idOf(a.row), t.of.idOf(b.row))
}
