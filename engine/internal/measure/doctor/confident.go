package doctor

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// This file finds rows whose label is probably wrong, from the votes of voters that have not seen them, and
// estimates how probably.
//
// Voters also contradict right labels, of rows in unusual words and of labels with few rows. So the model
// assumes that each row's label was drawn in one of two ways. With a probability called the rate, the label is
// any label at random. Otherwise the label is right, and drawn from the voters' probabilities, calibrated by
// an exponent (temperature scaling: Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural
// Networks", ICML 2017). Rate and exponent maximise the likelihood of the labels of all rows. Voters that err
// give the right label a small probability; the exponent learns from all rows how small. Random labels have
// even smaller probabilities; the rate says how many such labels there are. Bayes' rule then gives each row
// the probability that its label is wrong. The rows with a probability of at least 0.5 are named; the mean of
// their probabilities is the share expected to be wrong. Relabel is set if another label is right with a
// probability of 0.95.
//
// The table shows randomly swapped labels, with the voters neighbours, prototype and linear (n: share of the
// named rows that were swapped; e: share expected to be wrong; r: share of swapped rows named):
//
//	                       2 %               5 %               10 %
//	                  n    e    r       n    e    r       n    e    r
//	example, minilm  0.83 0.92 0.71    0.88 0.93 0.91    0.94 0.94 0.83
//	CLINC, minilm    0.92 0.98 0.98    0.94 0.98 0.99    0.97 0.98 0.99
//	HWU64, minilm    0.80 0.93 0.88    0.87 0.92 0.88    0.91 0.95 0.93
//	SNIPS, minilm    0.90 0.95 0.82    0.94 0.97 0.84    0.97 0.95 0.75
//	TREC, minilm     0.62 0.83 0.33    0.90 0.75 0.40    0.77 0.80 0.75
//	CLINC, hashing                     0.85 0.87 0.70
//	HWU64, hashing   1.00 0.82 0.46    0.96 0.85 0.51    0.88 0.86 0.81
//	SNIPS, hashing   0.80 0.93 0.73    0.83 0.95 1.00    0.92 0.94 0.75
//	TREC, hashing    1.00 0.72 0.06    0.81 0.73 0.46    0.76 0.75 0.76
//
// The data are the 560 rows of examples/intent, and 600 to 2,250 rows of each other set. Labels that were
// wrong before the swap lower n. Without swapped labels, no row is named in examples/intent, in TREC, or in
// HWU64 with hashing; one in CLINC and in SNIPS, and three in HWU64 with minilm.
//
// The model assumes that errors are as likely for one label as for another. If labels are confused because
// they mean nearly the same, voters confuse them too, and no row is named. The model applies to rows with
// one label.
//
// This file asks no voter, and changes no row.

// VotedRow is a row of the knowledge with the votes of voters that have not seen it.
type VotedRow struct {
	Text, Label string
	Votes       map[string]float64 // probability by label; they sum to 1 or less
}

// Suspect is a row whose label is probably wrong.
type Suspect struct {
	Row     int     // index among the rows given
	Label   string  // the likeliest label, a candidate to replace the row's own
	Share   float64 // of the votes, for Label
	Self    float64 // of the votes, for the row's own label
	Wrong   float64 // probability that the row's own label is wrong, at least minWrong
	Relabel bool    // Label is so surely right that it can replace the row's own
}

const (
	minWrong = .5  // least probability of a wrong label at which a row is named
	minSure  = .95 // probability of the label that replaces the row's own
)

// suspects returns rows whose label is probably wrong, the surest first. The sum of Wrong is the
// number expected to be wrong.
func suspects(rows []VotedRow) []Suspect {
	n := noiseOf(rows)
	var all []Suspect
	for i, row := range rows {
		best := n.likeliest[i]
		wrong, instead := n.wrong(i)
		if best == row.Label || wrong < minWrong {
			continue
		}
		all = append(all, Suspect{Row: i, Label: best, Share: row.Votes[best], Self: row.Votes[row.Label], Wrong: wrong, Relabel: instead >= minSure})
	}
	slices.SortFunc(all, func(a, b Suspect) int { return cmp.Or(cmp.Compare(b.Wrong, a.Wrong), cmp.Compare(a.Row, b.Row)) })
	return all
}

// noise is the model of labels that this file describes, fitted to rows.
type noise struct {
	labels      float64 // number of labels
	logs        [][]float64
	likeliest   []string // each row's label by the votes
	logOwn, top []float64

	rate        float64   // share of random labels
	self, other []float64 // calibrated probabilities of each row's own label, and of the likeliest
}

// least is the probability of a label without votes.
const least = 1e-6

// noiseOf fits the model to rows: the exponent by ternary search, the rate for each exponent by
// expectation maximization.
func noiseOf(rows []VotedRow) *noise {
	labels := map[string]bool{}
	for _, row := range rows {
		labels[row.Label] = true
		for label := range row.Votes {
			labels[label] = true
		}
	}
	n := &noise{labels: float64(len(labels)), self: make([]float64, len(rows)), other: make([]float64, len(rows))}
	for _, row := range rows {
		best, most, logs := row.Label, 0., make([]float64, 0, len(row.Votes))
		for _, label := range slices.Sorted(maps.Keys(row.Votes)) { // sorted, as floating-point sums depend on the order
			p := max(row.Votes[label], least)
			if logs = append(logs, math.Log(p)); p > most {
				best, most = label, p
			}
		}
		n.logs, n.likeliest = append(n.logs, logs), append(n.likeliest, best)
		n.logOwn, n.top = append(n.logOwn, math.Log(max(row.Votes[row.Label], least))), append(n.top, math.Log(max(most, least)))
	}
	low, high := .2, 4.
	for high-low > .01 {
		a, b := low+(high-low)/3, high-(high-low)/3
		if n.fit(a) >= n.fit(b) {
			high = b
		} else {
			low = a
		}
	}
	n.fit((low + high) / 2)
	return n
}

// fit calibrates the probabilities with an exponent, finds the rate that maximises the likelihood
// of the labels, and returns the logarithm of this likelihood.
func (n *noise) fit(exponent float64) (likelihood float64) {
	for i, logs := range n.logs {
		sum := (n.labels - float64(len(logs))) * math.Pow(least, exponent)
		for _, l := range logs {
			sum += math.Exp(exponent * l)
		}
		n.self[i], n.other[i] = math.Exp(exponent*n.logOwn[i])/sum, math.Exp(exponent*n.top[i])/sum
	}
	n.rate = .05
	for range 200 {
		random := 0.
		for i := range n.self {
			random += n.rate / n.labels / n.probability(i)
		}
		before := n.rate
		if n.rate = random / float64(len(n.self)); math.Abs(n.rate-before) < 1e-6 {
			break
		}
	}
	for i := range n.self {
		likelihood += math.Log(n.probability(i))
	}
	return likelihood
}

// probability returns the probability of a row's own label.
func (n *noise) probability(i int) float64 { return (1-n.rate)*n.self[i] + n.rate/n.labels }

// wrong returns the probability that a row's own label is wrong, and the probability that the
// likeliest label is right instead.
func (n *noise) wrong(i int) (wrong, instead float64) {
	random := n.rate / n.labels / n.probability(i)
	return random * (1 - n.self[i]), random * n.other[i]
}
