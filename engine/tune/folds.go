package tune

import (
	"fmt"
	"hash/fnv"
	"slices"
)

// Check returns an error where items with these texts do not fill the folds. It
// needs no answers: it can be called before any is paid for.
func Check(texts []string, folds int) error {
	if folds < 2 {
		return fmt.Errorf("%d folds: at least 2 are needed to hold rows out", folds)
	}
	sizes := make([]int, folds)
	for _, text := range texts {
		sizes[foldOf(text, folds)]++
	}
	if slices.Contains(sizes, 0) || slices.Contains(sizes, len(texts)) {
		return fmt.Errorf("%d items do not fill %d folds, where those with the same text share one: give more rows, or fewer folds", len(texts), folds)
	}
	return nil
}

func foldOf(text string, folds int) int {
	h := fnv.New64a()
	h.Write([]byte(text)) //nolint:errcheck // a hash takes everything
	return int(h.Sum64() % uint64(folds))
}

// split returns the items outside of a fold and those in it. Items with the
// same text fall into the same fold.
func (w *work) split(fold int) (train, test []int) {
	for i, r := range w.Results {
		if foldOf(r.Text, w.Folds) == fold {
			test = append(test, i)
		} else {
			train = append(train, i)
		}
	}
	return train, test
}
