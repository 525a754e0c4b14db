package elect

import (
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// This file handles labels that a table describes and that have no example in the knowledge (sdk.Described.Alone).
// Voters know one text of such a label, its description, and many texts of other labels. So with the weights that
// suit other labels, such a label hardly ever wins. The raise corrects this: a constant that is added to the label's
// score where a voter votes for it. This is calibrated stacking (Chao et al., "An empirical study and analysis of
// generalized zero-shot learning for object recognition in the wild", ECCV 2016).
//
// The raise is as high as the other labels can bear: labels without examples may then take at most the share
// raise_cost of the rows that the election answers right. So choosing the raise needs no row of the labels without
// examples.
//
// Labels with one example are almost as poorly known: their confidence has an upper bound.

const (
	usualRaise  = 3   // the greatest raise with few rows
	mostRaise   = 7   // about the weight of two voters without a learned weight
	enoughBorne = 100 // with fewer rows, usualRaise is the greatest, if no row may be lost
)

// aloneOf returns the labels that have no example; nil: there are none.
func aloneOf(described map[string]sdk.Described) map[string]bool {
	var all map[string]bool
	for label, d := range described {
		if d.Alone {
			if all == nil {
				all = map[string]bool{}
			}
			all[label] = true
		}
	}
	return all
}

// raise adds by to the scores of labels without examples, where a voter votes for them.
func (r *reader) raise(alone map[string]bool, by float64) {
	if by == 0 || len(alone) == 0 {
		return
	}
	for i, s := range r.scores {
		if s > 0 && alone[r.labels[i]] {
			r.scores[i] += by
		}
	}
}

// unraised returns the probability of an answer. If the answer is a label without examples, half of its raise is
// subtracted. The raise corrects weights that do not suit such labels, and no row shows by how much it overcorrects.
// Half was chosen on two sets with ten such labels each (CLINC150, HWU64): the default flag then spares 2 of 44 wrong
// answers with such labels, and 116 of 197 right ones. With nothing subtracted it spares 8 and 163, with all of the
// raise subtracted 0 and 47.
func unraised(probability float64, alone bool, by float64) float64 {
	if !alone {
		return probability
	}
	return sigmoid(logOdds(probability) - by/2)
}

const (
	mostOfOne  = 0.79 // the confidence in a label of one example, which says nothing of similar texts
	heldOutAll = 1000 // from this many rows on, a fit does not learn from all rows of a knowledge
)

// ofOne returns upper bounds of the confidence, for labels with at most one learned row. In a fit, voters never found
// such a row without having seen it.
func (l *lesson) ofOne() map[string]float64 {
	if len(l.rows) >= heldOutAll || slices.ContainsFunc(l.rows, func(r row) bool { return !r.heldOut }) {
		return nil
	}
	times, most := map[string]int{}, map[string]float64{}
	for _, r := range l.rows {
		times[r.label]++
	}
	for label := range l.labels {
		if times[label] <= 1 {
			most[label] = mostOfOne
		}
	}
	return most
}

// bounded applies the upper bound to the confidence in a label of one example. The bound does not apply if a voter
// with single answers and a weight votes for the label: other voters know nothing but the example.
func (m *model) bounded(v *sdk.Verdict, r *reader) {
	most, ok := m.Most[v.Answer]
	if !ok || v.Confidence <= most {
		return
	}
	label := slices.Index(r.labels, v.Answer)
	for i, c := range r.cast {
		if !c.distribution && m.Weights[r.voters[i]] > 0 && label < len(c.shares) && c.shares[label] > .5 {
			return
		}
	}
	v.Confidence = most
}

// bearable returns the raise that the rows can bear; 0: nobody votes for a label without examples.
func (p *problem) bearable(weights []float64) float64 {
	var leads []float64 // of right answers, over the best label without examples
	voted := false
	for i := range p.rows {
		r := &p.rows[i]
		p.scores = r.votes.score(p.scores, weights)
		lead := math.Inf(1)
		for label, s := range p.scores {
			if s > 0 && slices.Contains(r.alone, int32(label)) {
				lead, voted = min(lead, -s), true
				p.scores[label] = 0
			}
		}
		if best := r.votes.winner(p.scores); best >= 0 && best == r.truth {
			leads = append(leads, lead+p.scores[best])
		}
	}
	if !voted {
		return 0
	}
	slices.Sort(leads)
	most, at := float64(mostRaise), int(p.raiseCost*float64(len(leads)))
	if len(leads) < enoughBorne && at == 0 {
		most = usualRaise
	}
	if at < len(leads) {
		most = min(most, math.Floor(leads[at]*1e4)/1e4)
	}
	return max(most, 0)
}
