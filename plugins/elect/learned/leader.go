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

// leads reports whether the voter that is right on most rows should lead: it does unless
// cross-validation shows with certainty that the weighted votes do no harm.
func (p *problem) leads(ctx context.Context, best int, weights []float64) (bool, error) {
	sum, squares := 0.0, 0.0
	for fold := range folds {
		w := slices.Clone(weights) // close to what it will be
		if err := p.minimise(ctx, w, func(i int) bool { return i%folds != fold }); err != nil {
			return false, err
		}
		for i := fold; i < len(p.rows); i += folds {
			gain := 0.0
			if p.elects(i, w, -1) {
				gain++
			}
			if p.alone(i, best) {
				gain--
			}
			sum += gain
			squares += gain * gain
		}
	}
	n := float64(len(p.rows))
	gain := sum / n
	return gain-certain*math.Sqrt((squares/n-gain*gain)/n) < -harm, nil
}

// elects reports whether an election with these weights is right on a row.
func (p *problem) elects(i int, weights []float64, leader int) bool {
	r := &p.rows[i]
	p.scores = r.votes.score(p.scores, weights)
	return r.truth >= 0 && r.votes.winner(p.scores, leader) == r.truth
}

// right counts the rows on which a voter alone is right.
func (p *problem) right(voter int) int {
	n := 0
	for i := range p.rows {
		if p.alone(i, voter) {
			n++
		}
	}
	return n
}

// alone reports whether a voter alone is right on a row.
func (p *problem) alone(i, voter int) bool {
	r := &p.rows[i]
	best, most := -1, 0.0
	for _, x := range r.votes.all {
		if int(x.voter) == voter && x.strength > most+tie {
			best, most = int(x.label), x.strength
		}
	}
	return best >= 0 && best == r.truth
}
