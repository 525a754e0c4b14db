package row

import "math/bits"

// Set is a set of rows; nil is the empty one.
type Set []uint64

// NewSet returns an empty set with room for the rows below a number.
func NewSet(rows int) Set { return make(Set, (rows+63)/64) }

// All returns the set of all rows below a number.
func All(rows int) Set {
	b := NewSet(rows)
	for w := range b {
		b[w] = ^uint64(0)
	}
	if rest := rows % 64; rest > 0 {
		b[len(b)-1] = 1<<rest - 1
	}
	return b
}

// Has reports whether a row is in the set.
func (b Set) Has(r int32) bool { return b != nil && b[r>>6]>>(r&63)&1 != 0 }

// Add adds a row that there is room for.
func (b Set) Add(r int32) { b[r>>6] |= 1 << (r & 63) }

// Count is the number of rows.
func (b Set) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Each calls do for each row, rising.
func (b Set) Each(do func(r int32)) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			do(int32(i*64 + bits.TrailingZeros64(w)))
		}
	}
}

// Within reports whether all of a set is below a number of rows.
func (b Set) Within(rows int) bool {
	last := len(b) - 1
	return last < 0 || b[last] == 0 || last*64+bits.Len64(b[last]) <= rows
}
