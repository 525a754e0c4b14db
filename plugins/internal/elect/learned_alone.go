package elect

import (
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// This file is about labels that a table describes and that have no example in the knowledge
// (sdk.Described.Alone). Voters know one text of such a label, its description, and many of others, so the
// weights that suit those hardly ever elect it. As in calibrated stacking (Chao et al., "An empirical
// study and analysis of generalized zero-shot learning for object recognition in the wild", ECCV 2016), a
// constant is added to its score where a voter votes for it: the raise.
//
// The raise is as high as the other labels can bear: with it the labels without examples take at most the share raise_cost
// of the rows that the election answers right. So it needs no row of the labels that it is about.
//
// Labels with one example are almost as little known: their confidence has a bound.

const (
	usualRaise  = 3   // the most that few rows allow
	mostRaise   = 7   // as much as two voters of which nothing is known
	enoughBorne = 100 // rows below which the usual raise is the most, if they may lose none
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

// raise adds to the scores of labels without examples that a voter votes for.
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

// unraised returns the probability of an answer without half of its raise, if it is a label without examples. The raise makes up for
// weights that do not suit such labels, and for nothing more; no row shows for how much of it. Half was chosen on two sets with ten
// such labels each (CLINC150, HWU64): the default flag then spares 2 of 44 wrong answers with them and 116 of 197 right ones; without
// this 8 and 163, and without all of the raise 0 and 47.
func unraised(probability float64, alone bool, by float64) float64 {
	if !alone {
		return probability
	}
	return sigmoid(logOdds(probability) - by/2)
}

const (
	mostOfOne  = 0.79 // the confidence in a label of one example: that one says nothing of others like it
	heldOutAll = 1000 // rows of a knowledge from which on not all of them are learnt from
)

// ofOne bounds labels of which the knowledge has one row, or one that contradicts no other. Voters never found that row without
// having seen it.
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

// bounded bounds the confidence in a label of one example, unless a voter with a weight votes for it that gives single answers:
// others know nothing but the example.
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

// bearable returns the raise that the rows bear; 0: nobody votes for a label without examples.
func (p *problem) bearable(weights []float64) float64 {
	var leads []float64 // of answers that are right, over the best label without examples
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
