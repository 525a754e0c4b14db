// Package stratified says which rows a bounded sample has that treats labels alike: of each
// label those that come first by a hash of their id, as many of each as the bound allows, so
// that small labels stay whole. It is the same for the same rows, in whatever order they come,
// and a smaller sample is part of a larger one: who draws from a sample gets what it would
// get from all rows.
package stratified

import (
	"hash/fnv"
	"slices"
)

// Rank is random, and the same for the same id. Of a label the rows with the lowest are drawn.
func Rank(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id)) //nolint:errcheck // a hash takes everything
	rank := h.Sum64() * 0x9e3779b97f4a7c15
	return rank ^ rank>>32
}

// Each returns how many rows of a label are drawn at most, where labels have so many rows,
// for no more than the bound in all.
func Each(rows []int, bound int) int {
	rows = slices.Sorted(slices.Values(rows))
	left, each := bound, bound
	for i, n := range rows { // the smallest labels stay whole
		if each = left / (len(rows) - i); n > each {
			break
		}
		left -= n
		each = bound
	}
	return each
}
