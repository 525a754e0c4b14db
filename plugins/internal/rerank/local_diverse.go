package rerank

import (
	"cmp"
	"slices"
)

// vocabulary numbers the words of an item's candidates.
type vocabulary struct {
	numbers map[string]int
	last    []int // by word: the last set that it was added to
	sets    int
}

// set returns the different words of a text, as numbers.
func (v *vocabulary) set(words []string) []int {
	v.sets++
	set := make([]int, 0, len(words))
	for _, w := range words {
		n, ok := v.numbers[w]
		if !ok {
			n = len(v.last)
			v.numbers[w] = n
			v.last = append(v.last, 0)
		}
		if v.last[n] != v.sets {
			v.last[n] = v.sets
			set = append(set, n)
		}
	}
	return set
}

// overlap returns the Jaccard similarity of a set and the set of marked words, which has the given size.
func overlap(marked []bool, size int, set []int) float64 {
	both := 0
	for _, n := range set {
		if marked[n] {
			both++
		}
	}
	return ratio(float64(both), float64(size+len(set)-both))
}

// copied is the overlap up to which two texts only have the same topic. Above it, one text is increasingly a copy of
// the other.
const copied = .8

// maxDiverse is how many candidates are chosen for their diversity. The others follow in the order of their reduced
// relevance: few people read that far, and choosing all would double the cost.
const maxDiverse = 50

// diverse orders candidates by their relevance, reduced by what they copy from the most similar candidate before
// them. The reduction is 0 up to an overlap of copied, and weight for identical words. This is maximal marginal
// relevance (Carbonell and Goldstein, "The use of MMR, diversity-based reranking for reordering documents and
// producing summaries", SIGIR 1998) with a similarity that is 0 except for near copies. diverse returns the order and
// the values by which it was chosen, which never rise. Ties keep their order. The numbers in sets are below words.
func diverse(relevance []float64, sets [][]int, words int, copied, weight float64) (order []int, values []float64) {
	worth := slices.Clone(relevance)
	nearest := make([]float64, len(relevance)) // overlap with the most similar chosen candidate
	marked := make([]bool, words)
	left := make([]int, len(relevance))
	for i := range left {
		left[i] = i
	}
	for weight > 0 && len(left) > 0 && len(order) < maxDiverse {
		at := 0
		for i, n := range left {
			if worth[n] > worth[left[at]] {
				at = i
			}
		}
		chosen := left[at]
		order, values = append(order, chosen), append(values, worth[chosen])
		left = slices.Delete(left, at, at+1)
		for _, n := range sets[chosen] {
			marked[n] = true
		}
		for _, n := range left {
			nearest[n] = max(nearest[n], overlap(marked, len(sets[chosen]), sets[n]))
			worth[n] = relevance[n] - weight*max(0, nearest[n]-copied)/(1-copied)
		}
		for _, n := range sets[chosen] {
			marked[n] = false
		}
	}
	slices.SortStableFunc(left, func(a, b int) int { return cmp.Compare(worth[b], worth[a]) })
	for _, n := range left {
		order, values = append(order, n), append(values, worth[n])
	}
	return order, values
}
