package sample

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// This file trains a model, by stochastic gradient descent: see the package's documentation.

const (
	passesOfOne  = 345 // over a single row; divided by the cube root of the rows for more
	fewestPasses = 5
	highestRate  = 2   // by which residuals are multiplied
	stable       = 2.5 // the highest product of rate, rows of a batch and curvature
)

const (
	batchRows  = 64  // at most
	rowBlock   = 8   // rows that a goroutine takes at a time
	inputBlock = 128 // inputs
)

// descent is where training stands. One goroutine computes a number, in a fixed order, so that how
// many there are makes no difference.
type descent struct {
	*model
	rates    []float32   // by label: what residuals of the first batch are multiplied by; those of the last one come near 0
	terms    [][]feature // of the rows of a batch
	residual []float32   // a row for each: probabilities less the truth, times the rates
	present  []int32     // inputs that the batch has, and one behind all inputs
	begins   []int32     // by input: where the rows that have it begin in having, up to where those of the next one in present do
	having   []feature   // the rows that have the inputs
}

// train sets the weights to such as make the labels of examples likely.
func (m *model) train(ctx context.Context, examples []example, strength float64) error {
	d, n := newDescent(m, examples), len(examples)
	passes := max(int(passesOfOne/math.Cbrt(float64(n))), fewestPasses)
	for pass := range passes {
		left := func(at int) float32 { return float32(1 - (float64(pass)+float64(at)/float64(n))/float64(passes)) }
		for at := 0; at < n; at += len(d.terms) {
			if err := ctx.Err(); err != nil {
				return err
			}
			d.step(examples[at:min(at+len(d.terms), n)], left(at))
		}
		d.shrink(left(n/2) / float32(strength))
	}
	return nil
}

// shrink takes the step of the penalty for a pass, once all weights are there.
func (d *descent) shrink(by float32) {
	factors := make([]float32, len(d.rates))
	for label, rate := range d.rates {
		factors[label] = 1 / (1 + rate*by)
	}
	blocks(d.inputs(), inputBlock, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := d.weights[i*d.width:][:len(factors)]
			for label, factor := range factors {
				row[label] *= factor
			}
		}
	})
}

// newDescent begins where each label is as likely as it is frequent. A label's rate is as high as the
// curvature there allows, and batches are as large as the rate of the most frequent label allows.
func newDescent(m *model, examples []example) *descent {
	clear(m.weights)
	constant, squares := m.weights[m.dimension*m.width:][:len(m.labels)], 0.0
	var terms []feature
	for _, e := range examples {
		for _, label := range e.labels {
			constant[label]++
		}
		terms = e.terms(terms[:0])
		for _, f := range terms {
			squares += float64(f.Factor) * float64(f.Factor)
		}
	}
	squares /= float64(len(examples))
	rates, steepest := make([]float32, len(constant)), 0.0
	for i, count := range constant {
		share := (float64(count) + .5) / float64(len(examples)+1)
		rates[i] = float32(share * (1 - share) * squares)
		steepest = max(steepest, float64(rates[i]))
		constant[i] = float32(math.Log(share))
		if m.many {
			constant[i] -= float32(math.Log(1 - share))
		}
	}
	rows := min(max(int(stable/(highestRate*steepest)), rowBlock), batchRows)
	for i, curvature := range rates {
		rates[i] = min(highestRate, stable/(float32(rows)*curvature))
	}
	return &descent{
		model: m, rates: rates, terms: make([][]feature, rows),
		residual: make([]float32, rows*m.width), begins: make([]int32, m.inputs()+1),
	}
}

// step changes the weights by the gradient of a batch.
func (d *descent) step(batch []example, left float32) {
	blocks(len(batch), rowBlock, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := d.residual[i*d.width:][:d.width]
			d.terms[i] = batch[i].terms(d.terms[i][:0])
			d.score(row, d.terms[i])
			d.probabilities(row[:len(d.labels)], 1)
			for _, label := range batch[i].labels {
				row[label]--
			}
			for label, rate := range d.rates {
				row[label] *= rate
			}
		}
	})
	d.transpose(d.terms[:len(batch)], -left)
	residual := simd.NewView(d.residual, len(batch), d.width)
	blocks(len(d.present)-1, inputBlock, func(lo, hi int) {
		for k, i := range d.present[lo:hi] {
			having := d.having[d.begins[i]:d.begins[d.present[lo+k+1]]]
			simd.Best().AddRows(d.weights[int(i)*d.width:][:d.width], residual, having)
		}
	})
}

// transpose sorts the terms of a batch by input, as they are multiplied.
func (d *descent) transpose(terms [][]feature, by float32) {
	for _, i := range d.present {
		d.begins[i] = 0
	}
	d.present = d.present[:0]
	for _, of := range terms {
		for _, f := range of {
			if d.begins[f.Row] == 0 {
				d.present = append(d.present, f.Row)
			}
			d.begins[f.Row]++
		}
	}
	d.present = append(d.present, int32(d.inputs()))
	end := int32(0)
	for _, i := range d.present {
		end += d.begins[i]
		d.begins[i] = end
	}
	d.having = slices.Grow(d.having[:0], int(end))[:end]
	for i, of := range slices.Backward(terms) {
		for _, f := range of {
			d.begins[f.Row]--
			d.having[d.begins[f.Row]] = feature{Row: int32(i), Factor: by * f.Factor}
		}
	}
}

// blocks calls work for each block of n things, on as many goroutines as processors may
// run. Blocks do not depend on that number.
func blocks(n, size int, work func(lo, hi int)) {
	count := int64((n + size - 1) / size)
	var next atomic.Int64
	var workers sync.WaitGroup
	some := func() {
		for i := next.Add(1) - 1; i < count; i = next.Add(1) - 1 {
			work(int(i)*size, min(int(i+1)*size, n))
		}
	}
	for range min(int64(runtime.GOMAXPROCS(0)), count) - 1 {
		workers.Go(some)
	}
	some()
	workers.Wait()
}
