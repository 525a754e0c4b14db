package segment

import "math/bits"

// Ranks finds a row in a list in constant time: a bitmap of the list's rows, with the
// number of rows before each of its words (Jacobson, "Space-efficient static trees
// and graphs", FOCS 1989).
type Ranks []rankedWord

type rankedWord struct {
	rows   uint64
	before uint32
}

// sparseList is how many rows a segment has for each row of a list from which on the
// list has no ranks: they would take more memory than the list itself.
const sparseList = 16

// Ranks returns the ranks of a word's list, or nil if the list is sparse. The first
// call for a word makes them.
func (t *Terms) Ranks(term, rows int) Ranks {
	from, to := t.Extent(term, term+1)
	if (to-from)*sparseList < rows {
		return nil
	}
	if known, ok := t.ranks.Load(term); ok {
		return known.(Ranks)
	}
	made, _ := t.ranks.LoadOrStore(term, newRanks(t.Rows[from:to], rows))
	return made.(Ranks)
}

func newRanks(list []uint32, rows int) Ranks {
	r := make(Ranks, (rows+63)/64)
	for _, row := range list {
		if int(row) < rows { // else damaged
			r[row/64].rows |= 1 << (row % 64)
		}
	}
	before := 0
	for i := range r {
		r[i].before = uint32(before)
		before += bits.OnesCount64(r[i].rows)
	}
	return r
}

// Find returns the position of a row in the list.
func (r Ranks) Find(row uint32) (position int, ok bool) {
	w := &r[row/64]
	bit := uint64(1) << (row % 64)
	return int(w.before) + bits.OnesCount64(w.rows&(bit-1)), w.rows&bit != 0
}
