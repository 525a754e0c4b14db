package support

import (
	"hash/fnv"
	"math"
	"slices"
)

// This file says which rows a bounded sample has: of each label those that come first
// by a hash of their id, as many of each as the bound allows, so that small labels stay whole.
// It is the same in whatever order rows come, and a sample of a larger one is that of all rows.

// StratifiedRank is random, and the same for the same id. Of a label the rows with the lowest are drawn.
func StratifiedRank(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	rank := h.Sum64() * 0x9e3779b97f4a7c15
	return rank ^ rank>>32
}

// EachStratified returns how many rows of a label are drawn at most, where labels have so many rows,
// for no more than the bound in all. It sorts rows.
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
