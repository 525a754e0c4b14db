package learned

import (
	"context"
	"math"
	"slices"
)

const (
	folds   = 5
	few     = 20    // rows with which nothing is compared
	harm    = 0.005 // of the rows: as much worse as the best voter an election may be ...
	certain = 1.645 // ... with so many standard errors of certainty: 95 %
)

// trial is what an election decides on rows from whose votes it has not learnt.
type trial []point

// point is a decision.
type point struct {
	odds  float64 // that it is right: its log-odds by the election
	right bool
}

// try holds elections on all rows, each with weights that were fitted without it: without
// a leader, and with one.
func (p *problem) try(ctx context.Context, leader int, weights []float64) (without, with trial, err error) {
	without, with = make(trial, len(p.rows)), make(trial, len(p.rows))
	for fold := range folds {
		w := slices.Clone(weights) // close to what it will be
		if err := p.minimise(ctx, w, func(i int) bool { return i%folds != fold }); err != nil {
			return nil, nil, err
		}
		for i := fold; i < len(p.rows); i += folds {
			without[i], with[i] = p.decide(i, w, -1), p.decide(i, w, leader)
		}
	}
	return without, with, nil
}

// decide holds an election on a row.
func (p *problem) decide(i int, weights []float64, leader int) point {
	r := &p.rows[i]
	p.scores = r.votes.score(p.scores, weights)
	best := r.votes.winner(p.scores, leader)
	if best < 0 {
		return point{odds: math.Inf(-1)}
	}
	r.votes.softmax(p.scores, p.labels)
	return point{logOdds(p.scores[best]), best == r.truth}
}

// against compares the decisions with a voter alone: the share of rows by which it is right
// on more, and the standard error of that.
func (t trial) against(alone []bool) (gain, deviation float64) {
	sum, squares, n := 0.0, 0.0, float64(len(t))
	for i, d := range t {
		switch {
		case d.right && !alone[i]:
			sum, squares = sum+1, squares+1
		case alone[i] && !d.right:
			sum, squares = sum-1, squares+1
		}
	}
	gain = sum / n
	return gain, math.Sqrt((squares/n - gain*gain) / n)
}

// leads reports whether the voter that is right on most rows leads. On rows that were
// labelled to learn from, it does unless the election does certainly no harm; on rows held
// out of the knowledge only if that certainly does harm.
func (t trial) leads(alone []bool, heldOut bool) bool {
	gain, deviation := t.against(alone)
	if heldOut {
		return gain+certain*deviation < 0
	}
	return gain-certain*deviation < -harm
}

// alone tells for each row whether a voter alone is right, and on how many it is.
func (p *problem) alone(voter int) (right []bool, n int) {
	right = make([]bool, len(p.rows))
	for i, r := range p.rows {
		best, most := -1, 0.0
		for _, x := range r.votes.all {
			if int(x.voter) == voter && x.strength > most+tie {
				best, most = int(x.label), x.strength
			}
		}
		if best >= 0 && best == r.truth {
			right[i] = true
			n++
		}
	}
	return right, n
}
