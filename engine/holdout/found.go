package holdout

import (
	"cmp"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// Except narrows a filter, or nil, to the entries beside a row.
func (r *Rows) Except(id string, f *sdk.Filter) *sdk.Filter {
	others := sdk.Filter{Op: sdk.FilterNot, Parts: []sdk.Filter{{Op: sdk.FilterIn, Field: sdk.FieldID, Values: []any{id}}}}
	if f == nil {
		return &others
	}
	return &sdk.Filter{Op: sdk.FilterAnd, Parts: []sdk.Filter{others, *f}}
}

// Prototypes corrects the centroids that were found for a row, whose vector as a query
// is given: that of its own label is what it would be without the row.
func (r *Rows) Prototypes(id, label string, query []float32, nearest []sdk.Candidate) []sdk.Candidate {
	at := slices.IndexFunc(nearest, func(c sdk.Candidate) bool { return c.Label == label })
	own, l := r.vectors[id], r.labels[label]
	if at < 0 || own == nil || l == nil || l.sum == nil {
		return nearest // without the row it would be farther still
	}
	var dot, square float64
	for i, x := range l.sum {
		x -= float64(own[i])
		dot += x * float64(query[i])
		square += x * x
	}
	nearest = slices.Clone(nearest)
	nearest[at].Dense = 0
	if square > 0 {
		nearest[at].Dense = float32(dot / math.Sqrt(square))
	}
	slices.SortStableFunc(nearest, func(a, b sdk.Candidate) int { return cmp.Compare(b.Dense, a.Dense) })
	return nearest
}
