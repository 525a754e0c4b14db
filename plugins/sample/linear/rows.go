package linear

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/stratified"
)

// What the rows that are learnt from may take, in floats of 4 bytes.
const (
	maxFloats        = 64 << 20 // of vectors
	maxProbabilities = 32 << 20
)

// row is a row that is learnt from.
type row struct {
	rank        uint64 // random, and the same for the same row
	label, text string
	vector      []float32
	inputs      []feature // of the vector, in its place
}

// rows is a sample of the knowledge. Of each label it has the rows that rank first, as
// many for each as the bound allows, whatever the order in which rows come.
type rows struct {
	max       int
	dimension int
	sparse    bool // the first vector was mostly 0, so others are
	count     int
	byLabel   map[string][]row
}

func wrongDimension(got, want int) error {
	return sdk.Invalid(fmt.Errorf("a vector has %d dimensions, others have %d: build the knowledge anew", got, want))
}

// add takes a row, unless it has no label or no vector.
func (r *rows) add(t *sdk.TrainingRow) error {
	if t.Label == "" || empty(t.Vector) {
		return nil
	}
	if r.dimension == 0 {
		r.dimension = len(t.Vector)
		r.max = min(r.max, maxFloats/r.dimension)
		r.sparse = len(inputsOf(t.Vector))*mostlyZero <= r.dimension
	}
	if len(t.Vector) != r.dimension {
		return wrongDimension(len(t.Vector), r.dimension)
	}
	label := strings.Clone(t.Label)
	one := row{rank: stratified.Rank(t.ID), label: label, text: beginning(strings.Clone(t.Text))}
	if r.sparse {
		one.inputs = inputsOf(t.Vector)
	} else {
		one.vector = slices.Clone(t.Vector)
	}
	r.byLabel[label] = append(r.byLabel[label], one)
	if r.count++; r.count > r.max+r.max/4 {
		r.trim()
	}
	return nil
}

// trim leaves each label as many rows, up to the bound in all.
func (r *rows) trim() {
	bound := min(r.max, maxProbabilities/width(len(r.byLabel)))
	sizes := make([]int, 0, len(r.byLabel))
	for _, of := range r.byLabel {
		sizes = append(sizes, len(of))
	}
	each := stratified.Each(sizes, bound)
	r.count = 0
	for label, of := range r.byLabel {
		if len(of) > each {
			slices.SortFunc(of, before)
			of = slices.Clone(of[:each])
			r.byLabel[label] = of
		}
		r.count += len(of)
	}
}

// before orders rows by rank. Texts and vectors stand for the ids of rows that have the
// same one: equal rows may change places.
func before(a, b row) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.label, b.label), cmp.Compare(a.text, b.text), slices.Compare(a.vector, b.vector),
		slices.CompareFunc(a.inputs, b.inputs, func(x, y feature) int { return cmp.Or(cmp.Compare(x.Row, y.Row), cmp.Compare(x.Factor, y.Factor)) }))
}

// sorted returns the labels, and the rows by rank.
func (r *rows) sorted() (labels []string, all []row, err error) {
	if n := len(r.byLabel); n == 0 {
		return nil, nil, nil
	} else if bound := min(r.max, maxProbabilities/width(n)); n > bound {
		return nil, nil, sdk.Invalid(fmt.Errorf("the knowledge has %d labels, and there is memory for %d rows only: give fewer labels, or raise max_rows where it is less", n, bound))
	}
	r.trim()
	labels = slices.Sorted(maps.Keys(r.byLabel))
	for _, label := range labels {
		all = append(all, r.byLabel[label]...)
	}
	slices.SortFunc(all, before)
	return labels, all, nil
}
