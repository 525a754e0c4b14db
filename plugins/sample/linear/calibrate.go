package linear

import (
	"math"
	"slices"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// heldOut is what the models of cross-validation say of the examples that each of them
// has not learnt from.
type heldOut struct {
	scores [][]float32
	truth  []int
	spread []float64 // of the models, on what they have learnt from
}

// add notes the scores of a model, and returns how many examples it gets wrong.
func (h *heldOut) add(m *model, learnt, held []example) (wrong float64) {
	m.eachScore(held, func(e example, scores []float32) {
		h.scores, h.truth = append(h.scores, slices.Clone(scores)), append(h.truth, e.label)
		if slices.Index(scores, slices.Max(scores)) != e.label {
			wrong++
		}
	})
	h.spread = append(h.spread, m.spread(learnt))
	return wrong
}

// eachScore calls f with the scores of each example, which it may change.
func (m *model) eachScore(examples []example, f func(example, []float32)) {
	s := newScratch()
	for part := range slices.Chunk(examples, rowBlock) {
		scores := s.row(len(part) * m.width)
		m.score(scores, part, s)
		for i, e := range part {
			f(e, scores[i*m.width:][:len(m.labels)])
		}
	}
}

// spread is the standard deviation of the scores of an example, over the labels and as
// the root mean square over the examples.
func (m *model) spread(examples []example) float64 {
	sum := 0.0
	m.eachScore(examples, func(_ example, scores []float32) {
		mean, squares, n := 0.0, 0.0, float64(len(scores))
		for _, x := range scores {
			mean += float64(x) / n
			squares += float64(x) * float64(x) / n
		}
		sum += max(squares-mean*mean, 0)
	})
	return math.Sqrt(sum / float64(len(examples)))
}

// scale returns by what the scores of the final model are to be multiplied, so that its
// probabilities say how often it is right: see the package's documentation.
func (h *heldOut) scale(final *model, learnt []example) float64 {
	spread := final.spread(learnt)
	if len(h.scores) == 0 || spread == 0 {
		return 1
	}
	before := 0.0
	for _, s := range h.spread {
		before += s / float64(len(h.spread))
	}
	return h.likeliest() * math.Sqrt(before/spread)
}

// extreme is the largest factor, and the inverse of the smallest one.
const extreme = 16

// likeliest returns the factor that makes the true labels likeliest, by bisection of the
// slope, which rises.
func (h *heldOut) likeliest() float64 {
	low, high := -math.Log(extreme), math.Log(extreme)
	for high-low > 1e-3 {
		if middle := (low + high) / 2; h.slope(math.Exp(middle)) < 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp((low + high) / 2)
}

// slope is the derivative of the negative log-likelihood by the factor. A label counts as
// the true one by 1 - 1/(n+2), as with Platt, so that n right answers of n do not make
// the next one certain.
func (h *heldOut) slope(factor float64) float64 {
	sum, doubt := 0.0, 1/float64(len(h.scores)+2)
	var p []float32
	for i, scores := range h.scores {
		p = append(p[:0], scores...)
		simd.Best().Softmax(p, float32(factor))
		all, others := 0.0, float64(max(len(scores)-1, 1))
		for _, x := range scores {
			all += float64(x)
		}
		truth := float64(scores[h.truth[i]])
		sum += float64(simd.Dot(p, scores)) - (1-doubt)*truth - doubt*(all-truth)/others
	}
	return sum
}
