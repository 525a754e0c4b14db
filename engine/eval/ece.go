package eval

import (
	"math"
	"math/rand/v2"
	"slices"
)

const binCount = 15

// bins sum up confidences by their size, (0, 1/15], (1/15, 2/15] ...; 0 is in the first.
type bins struct {
	items             int
	confidence, right [binCount]float64
}

// bin is where a confidence belongs.
func bin(confidence float64) int { return max(int(math.Ceil(confidence*binCount))-1, 0) }

func (b *bins) add(confidence float64, right bool) {
	at := bin(confidence)
	b.items++
	b.confidence[at] += confidence
	if right {
		b.right[at]++
	}
}

// Bin are the items whose confidence is above Low and at most High, or 0 in the first.
type Bin struct {
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Items      int     `json:"items"`
	Confidence float64 `json:"confidence"` // their mean
	Right      float64 `json:"right"`      // the share that was answered with the expected label
}

// Bins are those that Calibration.ECE is of, without empty ones: the points of a reliability
// diagram.
func (c *Confidences) Bins() (all []Bin) {
	var sums bins
	var items [binCount]int
	for _, one := range c.items {
		sums.add(one.confidence, one.answered)
		items[bin(one.confidence)]++
	}
	for at, n := range items {
		if n > 0 {
			all = append(all, Bin{float64(at) / binCount, float64(at+1) / binCount, n, sums.confidence[at] / float64(n), sums.right[at] / float64(n)})
		}
	}
	return all
}

// ece is the expected calibration error. A bin with n of N items weighs n/N, and its
// means are sums divided by n.
func (b *bins) ece() float64 {
	sum := 0.
	for i := range b.right {
		sum += math.Abs(b.right[i] - b.confidence[i])
	}
	return sum / float64(b.items)
}

// Draws of outcomes; fewer where there are many items, which vary less.
const (
	mostDraws  = 1000
	leastDraws = 200
	drawn      = 20_000_000 // outcomes, unless that leaves too few draws
)

// chance is the 95th percentile of the expected calibration error where each item is
// right with the probability that its confidence says.
func chance(confidences []float64) float64 {
	at := make([]int, len(confidences))
	expected := bins{items: len(confidences)}
	for i, c := range confidences {
		at[i] = bin(c)
		expected.confidence[at[i]] += c
	}
	random := rand.New(rand.NewPCG(15, uint64(len(confidences)))) //nolint:gosec // a simulation
	found := make([]float64, min(max(drawn/len(confidences), leastDraws), mostDraws))
	for k := range found {
		expected.right = [binCount]float64{}
		for i, c := range confidences {
			if random.Float64() < c {
				expected.right[at[i]]++
			}
		}
		found[k] = expected.ece()
	}
	slices.Sort(found)
	return found[int(math.Ceil(.95*float64(len(found))))-1]
}
