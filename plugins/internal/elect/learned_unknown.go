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

// This file estimates the probability that a text belongs to none of the labels of the knowledge.
//
// Two things show it: the election is not sure of its answer, and the text lies far from what the
// voters have learnt from (sdk.Sample.Distance). The log-odds of an unknown text are
//
//	offset - odds * log-odds of the confidence + sum over the voters of weight * distance
//
// Rows that belong to none of the labels teach these numbers, by a logistic regression with a ridge
// penalty that pulls them towards a prior. Without such rows the prior is all there is: one text in
// 20 is unknown, and after a division by their standard deviations on the rows with labels the
// log-odds weigh 0.75 and each of m distances 0.75 / sqrt(m). That was chosen on five data sets, of
// which labels had been left out of the knowledge at random. The mean area under the ROC curve by
// which unknown texts are found there, over ten draws of labels:
//
//	the confidence alone                                        .824
//	with the distance of neighbours                             .850
//	with that of linear as well                                 .857
//	the same, learnt by leaving more labels out                 .854
//	the same, and the share of words that the knowledge lacks   .856
//
// So Fit leaves no labels out, and no voter counts words.
//
// The confidence is the probability that the text is known, times the probability that the answer
// is right if it is. That is calibrated once more on the rows with labels: it says how often answers
// to known texts are right, and is low for unknown ones.
//
// # Few rows
//
// On fewer than 200 rows standard deviations are great, and what is calibrated hides how strange a text is. There, without
// unknown rows, only the distance counts that correlates least with the log-odds: another says the same as they do.
// Both weights are multiplied by what makes a text as likely unknown as known that looks stranger than 19 of 20
// rows with labels, by the votes of voters that have not seen them. That is the p-value of conformal prediction
// (Vovk et al., "Algorithmic Learning in a Random World", 2005), which holds for few rows, too. And the confidence is at most
// the probability that the text is known. It was chosen on ten files of 46 to 94 rows, 5 to 12 labels, of six public sets,
// with 200 texts each that belong to none. Shares with a confidence below 1/2:
//
//	                                         other questions   made-up words   right answers
//	as on more rows                          .651              .542            .019
//	the least correlated, 19 of 20           .842              .723            .032
//	the same, bounded                        .865              .785            .045
//	9 of 10, bounded                         .924              .871            .083
//
// On ten files of 291 to 2,035 rows it flags .881, .985 and .034 in place of .627, .836 and .010; but confidences of
// known texts are worse there (Brier score .064 in place of .052 on 89 to 358 rows).
//
// Nothing is estimated where no voter gives a distance, where one that counts gives none for the
// item, and after a fit on fewer than 5 rows.

// scopeDetector recognises out-of-scope texts, which belong to no label.
type scopeDetector struct {
	Offset    float64     `json:"offset"`
	Odds      float64     `json:"odds"`
	Distances []remote    `json:"distances"`        // by voter
	Known     calibration `json:"confidence"`       // of the probability that text and answer are right
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

// judge completes a verdict whose confidence is that of the answer to a known text.
func (s *scopeDetector) judge(v *sdk.Verdict, samples []sdk.Sample) {
	if s == nil {
		return
	}
	unknown, ok := s.unknown(v.Confidence, distances(samples))
	switch {
	case !ok:
	case v.Answer == "": // the voters say it themselves
		v.Unknown = v.Confidence
	default:
		if v.Unknown, v.Confidence = unknown, s.Known.confidence(v.Confidence*(1-unknown)); s.Bounds {
			v.Confidence = min(v.Confidence, 1-unknown)
		}
	}
}

// distances returns the distances that voters give.
func distances(samples []sdk.Sample) map[string]float64 {
	all := map[string]float64{}
	for i := range samples {
		if d := samples[i].Distance; d > 0 {
			all[samples[i].Voter] = d
		}
	}
	return all
}

// The argument unknown has these names. A voter's weight has that of the voter behind one.
const (
	distanceOf    = "distance of "
	ofConfidence  = " of confidence"
	boundsName    = "bounds" + ofConfidence
	unknownNames  = `give offset, odds, "distance of NAME" for voters, "slope of confidence", "offset of confidence" and "bounds of confidence"`
	unknownNobody = `give "distance of NAME" for a voter: without distances nothing is unknown`
)

// argument returns the numbers as an argument of the election; nil: there are none.
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

// detectorOf reads the argument; nil: it is empty.
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
	usual     = 0.05 // the share of unknown texts where nobody knows better
	telling   = 0.75 // the weight of the log-odds, and of all distances
	halfway   = -1.  // the log-odds of a mean known text, if half of all were unknown
	narrowest = 1e-3 // the least standard deviation of an input
	scarce    = 200  // rows with labels from which on their standard deviations are enough
	sweeps    = 200  // over the weights of a fit; it takes about twenty
)

// sight is what shows of a row whether it is known.
type sight struct {
	point                        // its log-odds are calibrated
	distances map[string]float64 // by voter
}

// sights returns what rows of known labels show, by decisions of all their voters. On a row without
// some voters the election is held again, as it is without them.
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
		if !math.IsInf(d.odds, 0) { // something is answered
			d.odds = logOdds(of.Calibration.confidence(sigmoid(d.odds)))
			all = append(all, sight{d, p.rows[i].distances})
		}
	}
	return all
}

// fitDetector learns it from rows of known labels, and rows of none. nil: nothing shows them.
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
	weights := make([]float64, len(mean)+1) // the last is that of 1
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

// leastCorrelated returns which distance correlates least with the log-odds, on rows as inputs returns them.
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

// strange returns the score, without the constant, that one known row in 20 exceeds, by p-values of which n rows have
// steps of 1/(n+1); of fewer than 20 rows, the greatest.
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

// inputs returns, for each row that has all distances, minus its log-odds, the distances, and 1.
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

// separate moves weights from a prior to where they tell unknown rows from known ones, by Newton's
// method, one weight at a time. All but the last stay at 0 or above: a text is not known for being
// far away.
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
