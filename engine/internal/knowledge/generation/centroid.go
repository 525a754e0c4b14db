package generation

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// This file computes and ranks the centroids of labels. A centroid is the mean direction of the
// vectors with a label, as in a nearest centroid classifier with cosine distance (Han and Karypis
// 2000).
//
// It does not read or store. A build puts centroids into its store, which searches them; an
// attached collection holds them in memory.

// LabelSums holds the sum of the vectors of each label.
type LabelSums map[string][]float64

// Add adds a vector to the sum of its label, and ignores a vector without a label.
func (s LabelSums) Add(label string, vector []float32) {
	if label == "" {
		return
	}
	sum := s[label]
	if sum == nil {
		sum = make([]float64, len(vector))
		s[label] = sum
	}
	for i, x := range vector {
		sum[i] += float64(x)
	}
}

// Entries returns the centroids, sorted by label. The label is also the id of each.
func (s LabelSums) Entries() []sdk.Entry {
	all := make([]sdk.Entry, 0, len(s))
	for _, label := range slices.Sorted(maps.Keys(s)) {
		all = append(all, sdk.Entry{ID: label, Label: label, Vector: direction(s[label])})
	}
	return all
}

// direction scales a sum to norm 1. It returns zeros if the vectors cancel each other out.
func direction(sum []float64) []float32 {
	var square float64
	for _, x := range sum {
		square += x * x
	}
	out := make([]float32, len(sum))
	if square == 0 {
		return out
	}
	for i, x := range sum {
		out[i] = float32(x / math.Sqrt(square))
	}
	return out
}

// NearestCentroids returns the n centroids nearest to a vector, nearest first and equal ones by
// label, as a store ranks them. Score and Dense are the cosine. A zero vector finds none.
func NearestCentroids(centroids []sdk.Entry, vector []float32, n int) []sdk.Candidate {
	norm := math.Sqrt(Dot(vector, vector))
	if norm == 0 {
		return nil
	}
	all := make([]sdk.Candidate, len(centroids))
	for i, c := range centroids {
		cosine := float32(Dot(vector, c.Vector) / norm)
		all[i] = sdk.Candidate{ID: c.ID, Label: c.Label, Score: cosine, Dense: cosine, Lexical: sdk.Unscored}
	}
	slices.SortFunc(all, func(a, b sdk.Candidate) int {
		return cmp.Or(cmp.Compare(b.Dense, a.Dense), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(n, len(all))]
}

// Dot returns the dot product of two vectors. b must be at least as long as a.
func Dot(a, b []float32) (sum float64) {
	for i, x := range a {
		sum += float64(x) * float64(b[i])
	}
	return sum
}
