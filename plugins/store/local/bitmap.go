package local

import "math/bits"

// bitmap is a set of rows; nil is the empty one.
type bitmap []uint64

func newBitmap(rows int) bitmap { return make(bitmap, (rows+63)/64) }

func (b bitmap) has(r int32) bool { return b != nil && b[r>>6]>>(r&63)&1 != 0 }
func (b bitmap) set(r int32)      { b[r>>6] |= 1 << (r & 63) }

func (b bitmap) count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

func (b bitmap) each(do func(r int32)) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			do(int32(i*64 + bits.TrailingZeros64(w)))
		}
	}
}

// within reports whether all of a set is below a number of rows.
func (b bitmap) within(rows int) bool {
	last := len(b) - 1
	return last < 0 || b[last] == 0 || last*64+bits.Len64(b[last]) <= rows
}
