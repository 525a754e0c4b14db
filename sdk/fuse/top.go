package fuse

import (
	"cmp"
	"slices"
)

// compare orders found entries best first. cmp.Compare takes NaN for smaller
// than every number, so an unscored leg comes last.
func compare(a, b found) int {
	if c := cmp.Compare(b.score, a.score); c != 0 {
		return c
	}
	if c := cmp.Compare(b.dense, a.dense); c != 0 {
		return c
	}
	if c := cmp.Compare(b.lexical, a.lexical); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

// best moves the k best to the front, best first, and returns them. It keeps
// them in a heap with the worst on top while it passes over the rest.
func best(all []found, k int) []found {
	k = min(max(k, 0), len(all))
	heap := all[:k]
	if 0 < k && k < len(all) {
		for i := k/2 - 1; i >= 0; i-- {
			sink(heap, i)
		}
		for _, f := range all[k:] {
			if compare(f, heap[0]) < 0 {
				heap[0] = f
				sink(heap, 0)
			}
		}
	}
	slices.SortFunc(heap, compare)
	return heap
}

// sink restores the heap below i: no entry is better than one above it.
func sink(heap []found, i int) {
	for {
		worst := 2*i + 1
		if worst >= len(heap) {
			return
		}
		if r := worst + 1; r < len(heap) && compare(heap[r], heap[worst]) > 0 {
			worst = r
		}
		if compare(heap[worst], heap[i]) <= 0 {
			return
		}
		heap[i], heap[worst] = heap[worst], heap[i]
		i = worst
	}
}
