package fitted

import (
	"fmt"
	"slices"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// For any choice of rows, no fold has more than its part of the knowledge, and each label keeps a
// row outside each fold.
func TestDivide(t *testing.T) {
	for _, c := range []struct{ labels, each, chosen, folds int }{
		{2, 2, 4, 5}, {10, 5, 50, 5}, {100, 15, 1500, 5}, {100, 15, 600, 2}, {100, 15, 300, 1}, {1000, 2, 100, 1}, {1, 3, 3, 5}, {0, 0, 0, 1},
	} {
		r := &HeldOut{labels: map[string]*label{}, folds: map[string]int{}, rows: c.labels * c.each}
		var chosen []drawn
		for i := range c.labels {
			name := fmt.Sprint(i)
			r.labels[name] = &label{rows: c.each}
			for j := range c.each {
				id := fmt.Sprint(i, " ", j)
				chosen = append(chosen, drawn{id: id, label: name, order: orderOf(id)})
			}
		}
		slices.SortFunc(chosen, func(a, b drawn) int { return int(a.order>>1) - int(b.order>>1) })
		chosen = chosen[:c.chosen]
		if r.divide(chosen); r.Folds != c.folds {
			t.Errorf("%+v: %d folds", c, r.Folds)
		}
		sizes, inside := map[int]int{}, map[string]int{}
		for _, d := range chosen {
			if fold, ok := r.folds[d.id]; ok {
				sizes[fold]++
				inside[fmt.Sprint(d.label, " in ", fold)]++
			}
		}
		for fold, n := range sizes {
			if fold < 0 || fold >= r.Folds || n > (c.labels*c.each+maxFolds-1)/maxFolds {
				t.Errorf("%+v: fold %d takes %d rows", c, fold, n)
			}
		}
		for what, n := range inside {
			if n >= c.each {
				t.Errorf("%+v: %s are all %d rows of the label", c, what, n)
			}
		}
		if kept := len(r.folds); kept < c.chosen*9/10 {
			t.Errorf("%+v: only %d rows are held out", c, kept)
		}
	}
}

// The centroid of a row's own label is computed without the row.
func TestPrototypes(t *testing.T) {
	r := &HeldOut{
		vectors: map[string][]float32{"a": {1, 0}},
		labels:  map[string]*label{"x": {rows: 2, sum: []float64{1, 1}}, "y": {rows: 1, sum: []float64{.8, .6}}},
	}
	found := []sdk.Candidate{{Label: "y", Dense: .8}, {Label: "x", Dense: .7}}
	got := r.Prototypes("a", "x", []float32{1, 0}, found)
	if got[0].Label != "y" || got[1].Label != "x" || got[1].Dense != 0 || found[1].Dense != .7 {
		t.Errorf("without the row: %v, of %v", got, found)
	}
	if got := r.Prototypes("b", "x", []float32{1, 0}, found); got[1].Dense != .7 {
		t.Errorf("of a row that is not held out: %v", got)
	}
}

// Kept vectors are copies, because the vectors of a page share one piece of memory.
func TestKeep(t *testing.T) {
	r, page := &HeldOut{vectors: map[string][]float32{}}, []float32{1, 0, 0, 1}
	r.keep(sdk.Entry{ID: "a", Vector: page[:2:2]})
	clear(page)
	if got := r.vectors["a"]; !slices.Equal(got, []float32{1, 0}) {
		t.Errorf("%v is a part of the page", got)
	}
}

// A held-out row is searched for among the other rows, also with a filter.
func TestExcept(t *testing.T) {
	r := &HeldOut{}
	filter := &sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldLabel, Values: []any{"x"}}
	for _, f := range []*sdk.Filter{nil, filter} {
		if err := r.Except("a", f).Check(); err != nil {
			t.Error(err)
		}
	}
	if f := r.Except("a", filter); f.Op != sdk.FilterAnd || len(f.Parts) != 2 || f.Parts[1].Field != sdk.FieldLabel {
		t.Errorf("%+v", f)
	}
}
