package ballot

import "math"

// Unmeasured is the assumed accuracy of a voter without a measured one: half way between
// chance and certainty.
func Unmeasured(labels int) float64 { return (1/float64(max(2, labels)) + 1) / 2 }

// maxAccuracy is the greatest accuracy that counts: a voter that made no mistake on a
// small file is not infallible.
const maxAccuracy = 0.999

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
// Accuracies above 0.999 count as 0.999. A voter no better than chance has no weight, not
// a negative one.
func Worth(p float64, labels int) float64 {
	p = min(p, maxAccuracy)
	return max(0, math.Log(float64(max(2, labels)-1)*p/(1-p)))
}
