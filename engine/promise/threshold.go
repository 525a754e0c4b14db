package promise

import (
	"math"
	"strconv"
)

// Threshold is the promised threshold for a rule that flags the confidences below it or,
// inclusive, also those that equal it: the number with the fewest decimals about half-way
// between two confidences, so that their last digits do not matter.
func (p Promise) Threshold(inclusive bool) float64 {
	switch {
	case p.beyond < 0 && !inclusive:
		return 0 // nothing is flagged
	case p.beyond < 0:
		return -.01
	}
	middle, room := (p.beyond+p.least)/2, (p.least-p.beyond)/4
	for scale := 10.; scale <= 1e15; scale *= 10 {
		x, err := strconv.ParseFloat(strconv.FormatFloat(math.Round(middle*scale)/scale, 'g', 15, 64), 64)
		if err == nil && p.beyond+room < x && x < p.least-room {
			return x
		}
	}
	if inclusive {
		return p.beyond
	}
	return p.least
}
