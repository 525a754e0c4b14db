package support

import (
	"hash/fnv"
	"math"
	"slices"
)

// This file draws bounded samples of rows. Each label's rows are sorted by a hash of their id, and
// the first ones are drawn. The number per label is as large as the bound allows, so that small
// labels stay whole. A sample does not depend on the order of the rows, and a sample of a larger
// sample is the sample of all rows.

// StratifiedRank returns a random number that depends only on the id. A sample draws the rows of a
// label with the lowest ranks.
func StratifiedRank(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	rank := h.Sum64() * 0x9e3779b97f4a7c15
	return rank ^ rank>>32
}

// EachStratified returns the most rows to draw of one label, so that the total does not exceed the
// bound. rows holds the number of rows of each label; EachStratified sorts it.
func EachStratified(rows []int, bound int) int {
	slices.Sort(rows)
	for i, n := range rows { // the smallest labels stay whole
		if each := bound / (len(rows) - i); n > each {
			return each
		}
		bound -= n
	}
	return math.MaxInt
}
