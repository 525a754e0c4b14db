package elect

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// This file estimates the probability that a text is unknown: that it belongs to none of the labels of the knowledge.
//
// Two signs show it: the election is not sure of its answer, and the text lies far from what the voters have learned
// (sdk.Sample.Distance). The log-odds that a text is unknown are
//
//	offset - odds * log-odds of the confidence + sum over the voters of weight * distance
//
// These numbers are learned from rows that belong to none of the labels, by a logistic regression with a ridge
// penalty towards a prior. Without such rows the prior is used: one text in 20 is unknown. The inputs are divided by
// their standard deviations on the labelled rows; then the log-odds have weight 0.75, and each of m distances has
// weight 0.75 / sqrt(m). This was chosen on five data sets with labels removed from the knowledge at random. The
// table has the mean area under the ROC curve for finding unknown texts, over ten draws of labels:
//
//	the confidence alone                                        .824
//	with the distance of neighbours                             .850
//	with that of linear as well                                 .857
//	the same, learnt by leaving more labels out                 .854
//	the same, and the share of words that the knowledge lacks   .856
//
// So Fit leaves no labels out, and no voter counts words.
//
// The confidence is the probability that the text is known, times the probability that the answer is then right. The
// product is calibrated once more on the labelled rows. So it says how often answers to known texts are right, and it
// is low for unknown texts.
//
// # Few rows
//
// With fewer than 200 rows standard deviations are great, and a calibration hides how strange a text is. So without
// unknown rows, only the distance that correlates least with the log-odds counts; the others repeat the log-odds.
// Both weights are scaled by votes of voters that have not seen the rows. A text that looks stranger than 19 of 20
// labelled rows becomes as likely unknown as known. That is the p-value of conformal prediction (Vovk et al.,
// "Algorithmic Learning in a Random World", 2005), which also holds for few rows. And the confidence is at most the
// probability that the text is known. The rule was chosen on ten files of 46 to 94 rows and 5 to 12 labels, from six
// public sets, each with 200 texts that belong to no label. Shares with a confidence below 1/2:
//
//	                                         other questions   made-up words   right answers
//	as on more rows                          .651              .542            .019
//	the least correlated, 19 of 20           .842              .723            .032
//	the same, bounded                        .865              .785            .045
//	9 of 10, bounded                         .924              .871            .083
//
// On ten files of 291 to 2,035 rows this rule flags .881, .985 and .034 instead of .627, .836 and .010. But
// confidences of known texts are worse there (Brier score .064 instead of .052 on 89 to 358 rows).
//
// There is no estimate after a fit on fewer than 5 rows, if no voter gives a distance, or if a voter with a weight
// here gives none for the item.

// scopeDetector recognises out-of-scope texts, which belong to no label.
type scopeDetector struct {
	Offset    float64     `json:"offset"`
	Odds      float64     `json:"odds"`
	Distances []remote    `json:"distances"`        // by voter
	Known     calibration `json:"confidence"`       // of the probability that the text is known and the answer right
	Bounds    bool        `json:"bounds,omitempty"` // a confidence is at most the probability that the text is known
}

// remote is the weight of a voter's distance.
type remote struct {
	Voter  string  `json:"voter"`
	Weight float64 `json:"weight"`
}

// unknown returns the probability that a text is unknown; ok is false if it cannot be estimated.
func (s *scopeDetector) unknown(confidence float64, distances map[string]float64) (probability float64, ok bool) {
	x := s.Offset - s.Odds*logOdds(confidence)
	for _, r := range s.Distances {
		d, given := distances[r.Voter]
		if !given {
			return 0, false
		}
		x += r.Weight * d
	}
	return sigmoid(max(-surest, min(surest, x))), true
}

// judge adds the probability of an unknown text to a verdict, and corrects the verdict's confidence.
func (s *scopeDetector) judge(v *sdk.Verdict, samples []sdk.Sample) {
	if s == nil {
		return
	}
	unknown, ok := s.unknown(v.Confidence, distances(samples))
	switch {
	case !ok:
	case v.Answer == "": // the voters themselves say that no label fits
		v.Unknown = v.Confidence
	default:
		if v.Unknown, v.Confidence = unknown, s.Known.confidence(v.Confidence*(1-unknown)); s.Bounds {
			v.Confidence = min(v.Confidence, 1-unknown)
		}
	}
}

// distances returns the distances by voter.
func distances(samples []sdk.Sample) map[string]float64 {
	all := map[string]float64{}
	for i := range samples {
		if d := samples[i].Distance; d > 0 {
			all[samples[i].Voter] = d
		}
	}
	return all
}

// Names in the argument unknown. The weight of a voter is named distanceOf plus the voter's name.
const (
	distanceOf    = "distance of "
	ofConfidence  = " of confidence"
	boundsName    = "bounds" + ofConfidence
	unknownNames  = `give offset, odds, "distance of NAME" for voters, "slope of confidence", "offset of confidence" and "bounds of confidence"`
	unknownNobody = `give "distance of NAME" for a voter: without distances nothing is unknown`
)

// argument returns the numbers as the argument unknown; nil: there are none.
func (s *scopeDetector) argument() map[string]float64 {
	if s == nil {
		return nil
	}
	all := map[string]float64{
		"offset": s.Offset, "odds": s.Odds, "slope" + ofConfidence: s.Known.Slope, "offset" + ofConfidence: s.Known.Offset,
	}
	for _, r := range s.Distances {
		all[distanceOf+r.Voter] = r.Weight
	}
	if s.Bounds {
		all[boundsName] = 1
	}
	return all
}

// detectorOf reads the argument unknown; nil: it is empty.
func detectorOf(given map[string]float64) (*scopeDetector, error) {
	if len(given) == 0 {
		return nil, nil
	}
	s := &scopeDetector{Known: uncalibrated}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		voter, far := strings.CutPrefix(name, distanceOf)
		switch {
		case far && voter != "":
			s.Distances = append(s.Distances, remote{voter, value})
		case name == "offset":
			s.Offset = value
		case name == "odds":
			s.Odds = value
		case name == boundsName:
			s.Bounds = value != 0
		case name == "slope"+ofConfidence && value < 0:
			return nil, &sdk.ArgumentError{Argument: "unknown", Err: fmt.Errorf("%s is below 0", name)}
		case name == "slope"+ofConfidence:
			s.Known.Slope = value
		case name == "offset"+ofConfidence:
			s.Known.Offset = value
		default:
			return nil, &sdk.ArgumentError{Argument: "unknown", Err: fmt.Errorf("there is no %q; %s", name, unknownNames)}
		}
	}
	if len(s.Distances) == 0 {
		return nil, &sdk.ArgumentError{Argument: "unknown", Err: errors.New(unknownNobody)}
	}
	return s, nil
}

const (
	usual     = 0.05 // the prior share of unknown texts
	telling   = 0.75 // the prior weight of the log-odds, and of all distances
	halfway   = -1.  // the log-odds of an average known text, if half of all texts were unknown
	narrowest = 1e-3 // the least standard deviation of an input
	scarce    = 200  // labelled rows from which on standard deviations are reliable
	sweeps    = 200  // over the weights of a fit; it takes about twenty
)

// sight holds the signs by which a row looks known or unknown.
type sight struct {
	point                        // its log-odds are calibrated
	distances map[string]float64 // by voter
}

// sights returns the signs of rows with known labels; decided holds the decisions with all voters. On a row with
// missing voters, the decision is made again with the weights for that case.
func (m *model) sights(p *problem, voters []string, decided trial) (all []sight) {
	weights := make([]float64, len(voters))
	for i, d := range decided {
		missing := p.rows[i].missing(len(voters))
		of := m.without(missing)
		if missing != 0 {
			for at, name := range voters {
				weights[at] = of.Weights[name]
			}
			d = p.decide(i, weights)
		}
		if !math.IsInf(d.odds, 0) { // there is an answer
			d.odds = logOdds(of.Calibration.confidence(sigmoid(d.odds)))
			all = append(all, sight{d, p.rows[i].distances})
		}
	}
	return all
}

// fitDetector learns a detector from rows of known labels and rows of none. nil: no voter gives distances, or rows
// are too few.
func fitDetector(known, unknown []sight) *scopeDetector {
	times := map[string]int{}
	for _, row := range known {
		for voter := range row.distances {
			times[voter]++
		}
	}
	s := &scopeDetector{}
	for _, voter := range slices.Sorted(maps.Keys(times)) {
		if 2*times[voter] > len(known) {
			s.Distances = append(s.Distances, remote{Voter: voter})
		}
	}
	in, out := s.inputs(known), s.inputs(unknown)
	if len(s.Distances) == 0 || len(in) < handful {
		return nil
	}
	if s.Bounds = len(out) == 0 && len(in) < scarce; s.Bounds {
		i := leastCorrelated(in)
		s.Distances = s.Distances[i : i+1]
		in = s.inputs(known)
	}
	mean, deviation := spread(in)
	weights := make([]float64, len(mean)+1) // the last one is the constant
	for i := range mean {
		weights[i] = telling
		if i > 0 {
			weights[i] /= math.Sqrt(float64(len(s.Distances)))
		}
		for _, row := range slices.Concat(in, out) {
			row[i] = (row[i] - mean[i]) / deviation[i]
		}
	}
	weights[len(mean)] = halfway + logOdds(usual)
	if len(out) > 0 {
		separate(weights, in, out)
	}
	if score := strange(weights, in); s.Bounds && score > 0 {
		for i := range mean {
			weights[i] *= -weights[len(mean)] / score
		}
	}
	s.Offset = weights[len(mean)]
	for i, w := range weights[:len(mean)] {
		s.Offset -= w * mean[i] / deviation[i]
		if w = rounded(w / deviation[i]); i == 0 {
			s.Odds = w
		} else {
			s.Distances[i-1].Weight = w
		}
	}
	s.Offset = rounded(s.Offset)
	var t trial
	for _, row := range known {
		d, confidence := row.point, sigmoid(row.odds)
		if u, ok := s.unknown(confidence, row.distances); ok {
			d.odds = logOdds(confidence * (1 - u))
			t = append(t, d)
		}
	}
	if s.Known = uncalibrated; len(t) >= few {
		s.Known = t.calibrated(uncalibrated, smooth)
	}
	return s
}

// leastCorrelated returns the distance that correlates least with the log-odds. Rows have the form of inputs.
func leastCorrelated(rows [][]float64) (least int) {
	mean, deviation := spread(rows)
	lowest := math.Inf(1)
	for i := range mean[1:] {
		sum := 0.0
		for _, x := range rows {
			sum += (x[0] - mean[0]) / deviation[0] * (x[i+1] - mean[i+1]) / deviation[i+1]
		}
		if sum < lowest-tie {
			least, lowest = i, sum
		}
	}
	return least
}

// strange returns the score, without the constant, that one known row in 20 exceeds. The p-values of n rows have
// steps of 1/(n+1). With fewer than 20 rows it returns the greatest score.
func strange(weights []float64, known [][]float64) float64 {
	var scores []float64
	for _, x := range known {
		sum := 0.0
		for i := range x[1:] {
			sum += weights[i] * x[i]
		}
		scores = append(scores, sum)
	}
	slices.Sort(scores)
	return scores[len(scores)-max(int(usual*float64(len(scores)+1)), 1)]
}

// inputs returns a vector for each row that has all distances: the negative log-odds, the distances, and 1.
func (s *scopeDetector) inputs(rows []sight) (all [][]float64) {
	for _, row := range rows {
		x := []float64{-row.odds}
		for _, r := range s.Distances {
			if d := row.distances[r.Voter]; d > 0 {
				x = append(x, d)
			}
		}
		if len(x) == len(s.Distances)+1 {
			all = append(all, append(x, 1))
		}
	}
	return all
}

// spread returns mean and standard deviation of each input but the last.
func spread(rows [][]float64) (mean, deviation []float64) {
	n := float64(len(rows))
	for i := range rows[0][1:] {
		sum, squares := 0., 0.
		for _, x := range rows {
			sum += x[i]
		}
		for _, x := range rows {
			squares += (x[i] - sum/n) * (x[i] - sum/n)
		}
		mean, deviation = append(mean, sum/n), append(deviation, max(math.Sqrt(squares/n), narrowest))
	}
	return mean, deviation
}

// separate moves weights from their prior so that they separate unknown rows from known ones. It uses Newton's
// method, one weight at a time. All weights but the last stay at 0 or above: distance never makes a text known.
func separate(weights []float64, known, unknown [][]float64) {
	prior := slices.Clone(weights)
	for range sweeps {
		moved := 0.0
		for i := range weights {
			g, h := smooth*(weights[i]-prior[i]), smooth
			add := func(rows [][]float64, truth float64) {
				for _, x := range rows {
					score := 0.0
					for j, w := range weights {
						score += w * x[j]
					}
					p := sigmoid(score)
					g, h = g+(p-truth)*x[i], h+p*(1-p)*x[i]*x[i]
				}
			}
			add(known, 0)
			add(unknown, 1)
			to := weights[i] - max(-1, min(1, g/h))
			if i < len(weights)-1 {
				to = max(to, 0)
			}
			moved = max(moved, math.Abs(to-weights[i]))
			weights[i] = to
		}
		if moved < 1e-6 {
			return
		}
	}
}
