package interval

import (
	"encoding/json"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Paired compares two ways to answer the same items by those that one of them alone
// gets right.
type Paired struct {
	Items  int `json:"items"`
	Lost   int `json:"lost"`   // right by the first way alone
	Gained int `json:"gained"` // right by the second way alone
}

// Add counts an item that each of the two ways got right or not.
func (p *Paired) Add(first, second bool) {
	p.Items++
	switch {
	case first && !second:
		p.Lost++
	case second && !first:
		p.Gained++
	}
}

// Difference is by how much the second accuracy is above the first.
func (p Paired) Difference() float64 {
	if p.Items == 0 {
		return 0
	}
	return float64(p.Gained-p.Lost) / float64(p.Items)
}

// Interval returns Tango's score interval of the difference. Without items nothing is
// known: -1 to 1.
func (p Paired) Interval() Interval {
	z := quantile(Level)
	return Interval{p.bound(z), p.bound(-z)}
}

// LossAtMost returns how much the second way loses at most, with this confidence,
// one-sided. It is below 0 where the second way is surely better.
func (p Paired) LossAtMost(confidence float64) float64 {
	return -p.bound(quantile(2*confidence - 1))
}

// MarshalJSON writes the counts, and what follows from them: the difference, its
// interval and its chance.
func (p Paired) MarshalJSON() ([]byte, error) {
	type counts Paired
	return json.Marshal(struct {
		counts
		Difference float64  `json:"difference"`
		Interval   Interval `json:"interval"`
		Chance     float64  `json:"chance"`
	}{counts(p), p.Difference(), p.Interval(), p.Chance()})
}

// bound returns the difference from which what was counted is z standard errors away.
// That distance falls as the difference grows.
func (p Paired) bound(z float64) float64 {
	low, high := -1., 1.
	if p.Items == 0 {
		return math.Copysign(1, -z)
	}
	for range 60 { // beyond the precision of a float64
		middle := (low + high) / 2
		if p.score(middle) > z {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// score returns by how many standard errors what was counted is above a difference.
// The variance is that of the likeliest shares with this difference (Tango 1998,
// equations 5 to 8).
func (p Paired) score(difference float64) float64 {
	n, lost, gained := float64(p.Items), float64(p.Lost), float64(p.Gained)
	above := gained - lost - n*difference
	b := -gained - lost + (2*n-gained+lost)*difference
	c := -lost * difference * (1 - difference)
	likeliest := (math.Sqrt(max(b*b-8*n*c, 0)) - b) / (4 * n) // share of Lost
	variance := n * (2*likeliest + difference*(1-difference))
	switch {
	case variance > 0:
		return above / math.Sqrt(variance)
	case above == 0:
		return 0
	}
	return math.Copysign(math.Inf(1), above)
}

// Chance returns how likely a difference at least as large as this one is, either way,
// where both ways are equally good: the two-sided exact sign test.
func (p Paired) Chance() float64 {
	few, all := min(p.Lost, p.Gained), p.Lost+p.Gained
	if 2*few == all {
		return 1
	}
	return min(1, 2*mathext.RegIncBeta(float64(all-few), float64(few+1), .5))
}
