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
	batchRows  = 64      // at most
	rowBlock   = 8       // rows that a goroutine takes at a time
	inputBlock = 128     // inputs
	shared     = 2 << 20 // products of a batch from which on goroutines share them
	kept       = 4 << 20 // numbers of all examples up to which batches stay sorted, in 64 MiB
)

// descent is where training stands. One goroutine computes a number, in a fixed order, so that how
// many there are makes no difference.
type descent struct {
	*model
	rates    []float32 // by label: what residuals of the first batch are multiplied by; those of the last one come near 0
	rows     int       // of a batch
	residual []float32 // a row for each: probabilities less the truth, times the rates
	begins   []int32   // by input; see fill
	batches  []batch   // of all passes; nil: there is too much of them, and each is sorted anew
	one      batch
	alone    bool // a batch is so little work that it does not pay to share it
}

// batch is the terms of some examples, by row and by input.
type batch struct {
	terms   [][]feature
	present []int32   // inputs that the rows have
	begins  []int32   // of each, and of one more: where the rows that have it begin in having
	having  []feature // the rows that have the inputs
}

// train sets the weights to such as make the labels of examples likely.
func (m *model) train(ctx context.Context, examples []example, strength float64) error {
	d, n := newDescent(m, examples), len(examples)
	passes := max(int(passesOfOne/math.Cbrt(float64(n))), fewestPasses)
	for pass := range passes {
		left := func(at int) float32 { return float32(1 - (float64(pass)+float64(at)/float64(n))/float64(passes)) }
		for at := 0; at < n; at += d.rows {
			if err := ctx.Err(); err != nil {
				return err
			}
			some := examples[at:min(at+d.rows, n)]
			d.step(some, d.sorted(some, at/d.rows), left(at))
		}
		d.shrink(left(n/2) / float32(strength))
	}
	return nil
}

// sorted returns the batch of some examples.
func (d *descent) sorted(examples []example, number int) *batch {
	b := &d.one
	if d.batches != nil {
		b = &d.batches[number]
	}
	if d.batches == nil || b.terms == nil {
		d.fill(b, examples)
	}
	return b
}

// shrink takes the step of the penalty for a pass, once all weights are there.
func (d *descent) shrink(by float32) {
	factors := make([]float32, len(d.rates))
	for label, rate := range d.rates {
		factors[label] = 1 / (1 + rate*by)
	}
	d.blocks(d.inputs(), inputBlock, func(lo, hi int) {
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
	constant, squares, numbers := m.weights[m.dimension*m.width:][:len(m.labels)], 0.0, 0
	var terms []feature
	for _, e := range examples {
		for _, label := range e.labels {
			constant[label]++
		}
		terms = e.terms(terms[:0])
		numbers += len(terms)
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
	d := &descent{
		model: m, rates: rates, rows: rows, residual: make([]float32, rows*m.width), begins: make([]int32, m.inputs()),
		alone: rows*numbers/len(examples)*m.width < shared,
	}
	if numbers <= kept {
		d.batches = make([]batch, (len(examples)+rows-1)/rows)
	}
	return d
}

// step changes the weights by the gradient of a batch.
func (d *descent) step(examples []example, b *batch, left float32) {
	d.blocks(len(examples), rowBlock, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := d.residual[i*d.width:][:d.width]
			d.score(row, b.terms[i])
			d.probabilities(row[:len(d.labels)], 1)
			for _, label := range examples[i].labels {
				row[label]--
			}
			for label, rate := range d.rates {
				row[label] *= -left * rate
			}
		}
	})
	residual := simd.NewView(d.residual, len(examples), d.width)
	d.blocks(len(b.present), inputBlock, func(lo, hi int) {
		for k := lo; k < hi; k++ {
			simd.Best().AddRows(d.weights[int(b.present[k])*d.width:][:d.width], residual, b.having[b.begins[k]:b.begins[k+1]])
		}
	})
}

// fill sorts the terms of examples into a batch.
func (d *descent) fill(b *batch, examples []example) {
	b.terms, b.present, b.begins = slices.Grow(b.terms[:0], len(examples))[:len(examples)], b.present[:0], b.begins[:0]
	for i, e := range examples {
		b.terms[i] = e.terms(b.terms[i][:0])
		for _, f := range b.terms[i] {
			if d.begins[f.Row] == 0 {
				b.present = append(b.present, f.Row)
			}
			d.begins[f.Row]++
		}
	}
	end := int32(0)
	for _, i := range b.present {
		b.begins = append(b.begins, end)
		end, d.begins[i] = end+d.begins[i], end
	}
	b.begins = append(b.begins, end)
	b.having = slices.Grow(b.having[:0], int(end))[:end]
	for i, of := range b.terms {
		for _, f := range of {
			b.having[d.begins[f.Row]] = feature{Row: int32(i), Factor: f.Factor}
			d.begins[f.Row]++
		}
	}
	for _, i := range b.present {
		d.begins[i] = 0
	}
}

// blocks calls work for each block of n things, on as many goroutines as processors may
// run if that pays. Blocks do not depend on that number.
func (d *descent) blocks(n, size int, work func(lo, hi int)) {
	count := int64((n + size - 1) / size)
	var next atomic.Int64
	var workers sync.WaitGroup
	some := func() {
		for i := next.Add(1) - 1; i < count; i = next.Add(1) - 1 {
			work(int(i)*size, min(int(i+1)*size, n))
		}
	}
	if !d.alone {
		for range min(int64(runtime.GOMAXPROCS(0)), count) - 1 {
			workers.Go(some)
		}
	}
	some()
	workers.Wait()
}
