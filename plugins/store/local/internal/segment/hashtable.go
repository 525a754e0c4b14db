package segment

import "math/bits"

// HashTable is a hash table of numbers, of rows or words, with open addressing
// and linear probing. A cell is a number plus 1, or 0 if it is empty. It knows
// no keys: whoever looks something up compares them.
type HashTable []uint32

// directorySize is the number of cells for n keys: a power of two, at least a
// quarter of them empty.
func hashTableSize(n int) int {
	if n == 0 {
		return 0
	}
	return 1 << bits.Len(uint(n+n/3))
}

// Hash is FNV-1a (Fowler, Noll and Vo, 64 bits), with its upper half folded into
// the lower one, because tables use the lower bits.
func Hash(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return h ^ h>>32
}

// Add enters a number that is not there yet.
func (d HashTable) Add(hash uint64, number uint32) {
	mask := uint64(len(d) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		if d[at] == 0 {
			d[at] = number + 1
			return
		}
	}
}

// Find returns the number under a hash that is the one, or -1.
func (d HashTable) Find(hash uint64, is func(number uint32) bool) int32 {
	mask := uint64(len(d) - 1)
	for n := range uint64(len(d)) { // a damaged table may have no empty cell
		switch cell := d[(hash+n)&mask]; {
		case cell == 0:
			return -1
		case is(cell - 1):
			return int32(cell - 1)
		}
	}
	return -1
}
