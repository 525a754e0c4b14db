package topk

import "math"

// Scores keeps the highest of the scores that it is offered, in a heap with the lowest
// of them at the root: what as many rows as are wanted reach.
type Scores struct {
	Size int
	Heap []float32
}

// Floor is the score from which on one is worth offering.
func (s *Scores) Floor() float32 {
	if len(s.Heap) < s.Size {
		return float32(math.Inf(-1))
	}
	return s.Heap[0]
}

// Offer takes a score in, unless all that are kept are as high.
func (s *Scores) Offer(x float32) {
	if x <= s.Floor() {
		return
	}
	at := 0
	if len(s.Heap) < s.Size {
		s.Heap = append(s.Heap, x)
		for at = len(s.Heap) - 1; at > 0 && s.Heap[(at-1)/2] > x; at = (at - 1) / 2 {
			s.Heap[at] = s.Heap[(at-1)/2]
		}
	} else {
		for down := 1; down < len(s.Heap); down = 2*at + 1 {
			if down+1 < len(s.Heap) && s.Heap[down+1] < s.Heap[down] {
				down++
			}
			if s.Heap[down] >= x {
				break
			}
			s.Heap[at], at = s.Heap[down], down
		}
	}
	s.Heap[at] = x
}
