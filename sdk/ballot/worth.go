package ballot

import "math"

// Unmeasured is the accuracy that a voter is taken to have where nobody has
// measured it: half way between chance and certainty.
func Unmeasured(labels int) float64 { return (1/float64(max(2, labels)) + 1) / 2 }

// surest is the greatest accuracy that counts. A voter that made no mistake on
// a small file is not infallible: at this one it outvotes others as often as
// its 999 of 1,000 right answers tell.
const surest = 0.999

// Worth is the weight of a vote by a voter that is right on a share p of the
// items, among so many labels (at least 2):
//
//	log((labels - 1) * p / (1 - p))
//
// Votes weighted so elect the likeliest label if voters err independently of
// each other, on each wrong label as often as on any other, and labels are
// equally frequent. For two labels it is the optimal rule of Nitzan and
// Paroush, "Optimal decision rules in uncertain dichotomous choice
// situations", International Economic Review 23(2), 1982; for more it is that
// of Kuncheva and Rodríguez, "A weighted voting framework for classifiers
// ensembles", Knowledge and Information Systems 38, 2014.
//
// Accuracies above 0.999 count as that. A voter that is no better than chance
// has no weight: what it says is not turned into its opposite.
func Worth(p float64, labels int) float64 {
	p = min(p, surest)
	return max(0, math.Log(float64(max(2, labels)-1)*p/(1-p)))
}
