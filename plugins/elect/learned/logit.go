package learned

import (
	"context"
	"math"
)

const (
	ridge      = 0.1 // of the squared distance from prior
	steps      = 50  // of Newton's method at most; it takes about ten
	shortest   = 1e-6
	flat       = 1e-6 // the expected decrease with which a step is the last one
	sufficient = 1e-4 // share of the expected decrease that a step has to bring (Armijo)
	negligible = 1e-9 // the probability that is taken for 0 in a gradient
)

// row is what is learnt from a labelled row.
type row struct {
	id, label string
	votes     votes // by label
	truth     int   // its label, among those of the votes; -1: nobody voted for it
}

// problem is what weights are fitted to: rows, with the number of all labels.
type problem struct {
	rows   []row
	labels int
	voters int

	gradient []float64
	hessian  [][]float64
	scores   []float64
	mean     []float64 // by voter: of its strengths under the model's probabilities
	touched  []int32   // voters with votes on a row
}

func newProblem(rows []row, labels, voters int) *problem {
	p := &problem{rows: rows, labels: labels, voters: voters, gradient: make([]float64, voters), hessian: make([][]float64, voters), mean: make([]float64, voters)}
	for i := range p.hessian {
		p.hessian[i] = make([]float64, voters)
	}
	return p
}

// loss is the negative log-likelihood of the rows that keep keeps, with the penalty. It
// computes its gradient and Hessian, too.
func (p *problem) loss(weights []float64, keep func(int) bool) float64 {
	value := 0.0
	for i := range p.hessian {
		clear(p.hessian[i])
	}
	for i, w := range weights {
		value += ridge / 2 * (w - prior) * (w - prior)
		p.gradient[i], p.hessian[i][i] = ridge*(w-prior), ridge
	}
	for i := range p.rows {
		if !keep(i) {
			continue
		}
		r := &p.rows[i]
		p.scores = r.votes.score(p.scores, weights)
		if r.truth >= 0 {
			value -= p.scores[r.truth]
		}
		value += r.votes.softmax(p.scores, p.labels)
		p.derive(r)
	}
	return value
}

// derive adds a row's part to gradient and Hessian. The scores are its probabilities.
func (p *problem) derive(r *row) {
	all := r.votes.all
	p.touched = p.touched[:0]
	for lo, hi := 0, 0; lo < len(all); lo = hi {
		label := int(all[lo].label)
		for hi < len(all) && int(all[hi].label) == label {
			hi++
		}
		probability := p.scores[label]
		if probability < negligible && label != r.truth {
			continue
		}
		for i, x := range all[lo:hi] {
			if p.mean[x.voter] == 0 {
				p.touched = append(p.touched, x.voter)
			}
			pull := probability * x.strength
			p.mean[x.voter] += pull
			if label == r.truth {
				p.gradient[x.voter] -= x.strength
			}
			for _, y := range all[lo:][:i+1] {
				p.hessian[x.voter][y.voter] += pull * y.strength
			}
		}
	}
	for _, a := range p.touched {
		p.gradient[a] += p.mean[a]
		for _, b := range p.touched {
			if b <= a {
				p.hessian[a][b] -= p.mean[a] * p.mean[b]
			}
		}
	}
	for _, a := range p.touched {
		p.mean[a] = 0
	}
}

// minimise improves weights, which are never negative, by Newton's method.
func (p *problem) minimise(ctx context.Context, weights []float64, keep func(int) bool) error {
	next, by := make([]float64, len(weights)), make([]float64, len(weights))
	value := p.loss(weights, keep)
	for range steps {
		p.step(weights, by)
		slope := 0.0
		for i := range by {
			slope += p.gradient[i] * by[i]
		}
		if slope > -flat { // so close that this step arrives
			for i := range weights {
				weights[i] = max(weights[i]+by[i], 0)
			}
			return nil
		}
		better := false
		for size := 1.0; !better; size /= 2 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if size < shortest {
				return nil // as good as numbers of 64 bits can be
			}
			for i, w := range weights {
				next[i] = max(w+size*by[i], 0)
			}
			if now := p.loss(next, keep); now <= value+sufficient*size*slope {
				value, better = now, true
			}
		}
		copy(weights, next)
	}
	return nil
}

// step sets by to the step with which the quadratic approximation is smallest, by
// coordinate descent, a voter at a time.
func (p *problem) step(weights, by []float64) {
	clear(by)
	for range 1000 {
		moved := 0.0
		for i := range by {
			g := p.gradient[i]
			for j := range by {
				g += p.hessian[max(i, j)][min(i, j)] * by[j]
			}
			to := max(by[i]-g/p.hessian[i][i], -weights[i])
			moved = max(moved, math.Abs(to-by[i]))
			by[i] = to
		}
		if moved < 1e-9 {
			return
		}
	}
}
