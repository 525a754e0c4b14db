package bpe

// queue is a binary heap of pairs: the lowest rank comes first, and the leftmost of these.
type queue []uint64

// place is a pair in a queue: its rank, and below it the position of its left symbol.
func place(rank uint32, at int) uint64 { return uint64(rank)<<32 | uint64(uint32(at)) }

func (q *queue) push(p uint64) {
	*q = append(*q, p)
	s := *q
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if s[parent] <= s[i] {
			break
		}
		s[parent], s[i] = s[i], s[parent]
		i = parent
	}
}

func (q *queue) pop() uint64 {
	s := *q
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if s[child] < s[least] {
				least = child
			}
		}
		if least == i {
			break
		}
		s[least], s[i] = s[i], s[least]
		i = least
	}
	*q = s
	return top
}
