package search

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestScores compares the heap with sorting.
func TestScores(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for size := 1; size < 40; size++ {
		var all []float32
		kept := Scores{Size: size}
		for range 3 * size {
			x := float32(r.IntN(30))
			all = append(all, x)
			kept.Offer(x)
			slices.Sort(all)
			want := all[max(0, len(all)-size):]
			if got := slices.Sorted(slices.Values(kept.Heap)); !slices.Equal(got, want) {
				t.Fatalf("size %d: %v, want %v", size, got, want)
			}
			if len(want) == size && kept.Floor() != want[0] {
				t.Fatalf("size %d: floor %v, want %v", size, kept.Floor(), want[0])
			}
		}
	}
}
