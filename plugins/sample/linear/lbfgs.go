package linear

import (
	"context"
	"math"
)

const (
	remembered = 5    // steps from which L-BFGS estimates the curvature
	sufficient = 1e-4 // share of the expected decrease that a step has to bring (Armijo)
	halvings   = 10   // of a step
	flat       = 1e-5 // the gradient's length at which there is nothing left to gain
)

// step is one that was taken, with the change of the gradient.
type step struct {
	s, y []float32
	rho  float64 // 1 / s·y
}

// minimise improves the model's weights by L-BFGS, with at most so many evaluations.
func (p *problem) minimise(ctx context.Context, evaluations int) error {
	w := p.weights
	g, direction := make([]float32, len(w)), make([]float32, len(w))
	next, nextG := make([]float32, len(w)), make([]float32, len(w))
	var steps []step
	value := p.evaluate(g)
	for evaluations--; evaluations > 0; {
		length := math.Sqrt(p.dot(g, g))
		if length < flat {
			break
		}
		copy(direction, g)
		p.precondition(direction, steps)
		slope, size := -p.dot(direction, g), 1.0
		if slope >= 0 { // rounding has spoilt the estimate
			steps = nil
			copy(direction, g)
			slope = -length * length
		}
		if len(steps) == 0 {
			size = 1 / length
		}
		found, nextValue := false, 0.0
		for range halvings {
			if err := ctx.Err(); err != nil {
				return err
			}
			copy(next, w)
			p.add(next, -size, direction)
			p.weights = next
			nextValue = p.evaluate(nextG)
			evaluations--
			if found = nextValue <= value+sufficient*size*slope; found || evaluations <= 0 {
				break
			}
			size /= 2
		}
		p.weights = w
		if !found {
			break
		}
		steps = p.remember(steps, w, next, g, nextG)
		copy(w, next)
		copy(g, nextG)
		value = nextValue
	}
	return nil
}

// remember adds the step from w to next, in the place of the oldest one where there are
// enough.
func (p *problem) remember(steps []step, w, next, g, nextG []float32) []step {
	var last step
	if len(steps) == remembered {
		last = steps[0]
		steps = append(steps[:0:0], steps[1:]...)
	} else {
		last = step{s: make([]float32, len(w)), y: make([]float32, len(w))}
	}
	copy(last.s, next)
	p.add(last.s, -1, w)
	copy(last.y, nextG)
	p.add(last.y, -1, g)
	product := p.dot(last.s, last.y)
	if product <= 0 {
		return steps
	}
	last.rho = 1 / product
	return append(steps, last)
}

// precondition multiplies d by the estimate of the inverse Hessian: Nocedal's two loops.
func (p *problem) precondition(d []float32, steps []step) {
	if len(steps) == 0 {
		return
	}
	alpha := make([]float64, len(steps))
	for i := len(steps) - 1; i >= 0; i-- {
		alpha[i] = steps[i].rho * p.dot(steps[i].s, d)
		p.add(d, -alpha[i], steps[i].y)
	}
	last := steps[len(steps)-1]
	scale := 1 / (last.rho * p.dot(last.y, last.y))
	p.add(d, scale-1, d)
	for i := range steps {
		beta := steps[i].rho * p.dot(steps[i].y, d)
		p.add(d, alpha[i]-beta, steps[i].s)
	}
}
