package crossval

import (
	"fmt"
	"hash/fnv"
	"slices"
)

// Folds says which part of the items each belongs to.
type Folds struct {
	Count int
	of    []int // by item
}

// Split splits items with these texts into folds. It fails where they do not fill them,
// which can be found out before any answer is paid for.
func Split(texts []string, folds int) (Folds, error) {
	if folds < 2 {
		return Folds{}, fmt.Errorf("%d folds: at least 2 are needed to hold rows out", folds)
	}
	f := Folds{folds, make([]int, len(texts))}
	sizes := make([]int, folds)
	for i, text := range texts {
		f.of[i] = foldOf(text, folds)
		sizes[f.of[i]]++
	}
	if slices.Contains(sizes, 0) || slices.Contains(sizes, len(texts)) {
		return f, fmt.Errorf("%d items do not fill %d folds, where those with the same text share one: give more rows, or fewer folds", len(texts), folds)
	}
	return f, nil
}

func foldOf(text string, folds int) int {
	h := fnv.New64a()
	h.Write([]byte(text)) //nolint:errcheck // a hash takes everything
	return int(h.Sum64() % uint64(folds))
}

// Of returns the items outside of a fold and those in it, in their order.
func (f Folds) Of(fold int) (train, test []int) {
	for i, of := range f.of {
		if of == fold {
			test = append(test, i)
		} else {
			train = append(train, i)
		}
	}
	return train, test
}

// All are the positions of all items.
func (f Folds) All() []int {
	all := make([]int, len(f.of))
	for i := range all {
		all[i] = i
	}
	return all
}
