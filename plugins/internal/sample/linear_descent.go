package sample

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// This file trains a model by dual coordinate descent: see linear.go.

const (
	cost       = 1 // of a squared violation of the margin, against half the squared weights
	mostPasses = 8
	violation  = .1 // of the margin: training ends once all are smaller; smaller than half are ignored
	labelBlock = 128
	mostKept   = 8 << 20 // terms of all examples: 64 MiB
	fewChanges = 8       // up to this many labels of an example are changed one by one
)

// descent is the training state of a block of labels. Blocks do not depend on each other, so the number of goroutines
// makes no difference.
type descent struct {
	*lesson
	first, labels, width int
	weights              simd.View // by input
	duals                []float32 // by example and label: how much the example counts for or against the label
	scores, by           []float32 // of one example; by: the changes of its duals, with the sign of the label
	changed              []int
	terms, one           []feature // of one example; one term, for the changes
}

// lesson holds the training data of all blocks.
type lesson struct {
	*model
	examples []example
	vector   float32     // factor of vectors, so that their mean length is 1
	length   float32     // factor of the features of texts
	squares  []float32   // by example: the squared length
	kept     [][]feature // by example: the terms; nil: too many to keep, so they are made each time
}

// terms returns the model's inputs for example i. It may use the memory of to.
func (l *lesson) terms(to []feature, i int) []feature {
	if l.kept != nil {
		return l.kept[i]
	}
	to = l.examples[i].terms(to[:0])
	for at, f := range to {
		to[at].Factor *= l.factor(int(f.Row))
	}
	return to
}

// factor returns the factor of an input.
func (l *lesson) factor(input int) float32 {
	switch {
	case input < l.dimension:
		return l.vector
	case input == l.dimension:
		return 1
	}
	return l.length
}

// train fits weights that separate each label's examples from all others by a margin. In training, features of texts
// have the given length beside vectors of length 1. The resulting weights apply to inputs before that scaling.
func (m *model) train(ctx context.Context, examples []example, length float32) error {
	l, numbers, square := &lesson{model: m, examples: examples, length: length / textNorm, squares: make([]float32, len(examples))}, 0, 0.0
	all, terms := make([][]feature, len(examples)), []feature(nil)
	for _, e := range examples {
		square += float64(simd.Dot(e.vector, e.vector))
		for _, f := range e.inputs[:max(len(e.inputs)-1, 0)] {
			square += float64(f.Factor) * float64(f.Factor)
		}
	}
	l.vector = float32(math.Sqrt(float64(len(examples)) / square))
	for i := range examples {
		terms = l.terms(terms, i)
		for _, f := range terms {
			l.squares[i] += f.Factor * f.Factor
		}
		if numbers += len(terms); numbers <= mostKept {
			all[i] = slices.Clone(terms)
		}
	}
	if numbers <= mostKept {
		l.kept = all
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	some := func() {
		for first := int(next.Add(1)-1) * labelBlock; first < len(m.labels); first = int(next.Add(1)-1) * labelBlock {
			l.block(ctx, first)
		}
	}
	for range min(runtime.GOMAXPROCS(0), (len(m.labels)+labelBlock-1)/labelBlock) - 1 {
		workers.Go(some)
	}
	some()
	workers.Wait()
	return ctx.Err()
}

// block trains the labels of a block.
func (l *lesson) block(ctx context.Context, first int) {
	width := min(labelBlock, l.width-first)
	d := &descent{
		lesson: l, first: first, width: width, labels: min(width, len(l.labels)-first),
		weights: simd.NewView(make([]float32, l.inputs()*width), l.inputs(), width),
		duals:   make([]float32, len(l.examples)*width), scores: make([]float32, width), by: make([]float32, width), one: make([]feature, 1),
	}
	order := make([]int, len(l.examples))
	for i := range order {
		order[i] = i
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range mostPasses {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		worst := float32(0)
		for _, i := range order {
			if ctx.Err() != nil {
				return
			}
			worst = max(worst, d.visit(i))
		}
		if worst < violation {
			break
		}
	}
	for i := range l.inputs() {
		row := l.weights[i*l.width+first:][:width]
		copy(row, d.weights.Row(i))
		for at, factor := 0, l.factor(i); at < d.labels; at++ {
			if row[at] *= factor; i == l.dimension {
				row[at]--
			}
		}
	}
}

// visit sets the duals of an example, one for each label, to their optimum while all other duals stay fixed. It
// returns the greatest violation of the margin.
func (d *descent) visit(i int) float32 {
	e := &d.examples[i]
	d.terms = d.lesson.terms(d.terms, i)
	for label := range d.scores {
		d.scores[label] = -1
	}
	simd.Best().AddRows(d.scores, d.weights, d.terms)
	for _, label := range e.labels {
		if at := label - d.first; at >= 0 && at < d.labels {
			d.scores[at] = -d.scores[at]
		}
	}
	const diagonal = 1. / (2 * cost)
	duals, step, worst := d.duals[i*d.width:][:d.labels], 1/(d.squares[i]+diagonal), float32(0)
	d.changed = d.changed[:0]
	for label, score := range d.scores[:d.labels] { // the scores of the example's own labels have the opposite sign
		slope := -score - 1 + diagonal*duals[label]
		if duals[label] == 0 && slope > 0 || max(slope, -slope) < violation/2 {
			continue
		}
		to := max(duals[label]-slope*step, 0)
		d.by[label] = duals[label] - to
		duals[label] = to
		d.changed = append(d.changed, label)
		worst = max(worst, slope, -slope)
	}
	for _, label := range e.labels {
		if at := label - d.first; at >= 0 && at < d.labels {
			d.by[at] = -d.by[at]
		}
	}
	d.change()
	return worst
}

// change adds the example to the weights, times the changes of its duals.
func (d *descent) change() {
	if len(d.changed) > fewChanges {
		by := simd.NewView(d.by, 1, d.width)
		for _, f := range d.terms {
			d.one[0].Factor = f.Factor
			simd.Best().AddRows(d.weights.Row(int(f.Row)), by, d.one)
		}
	} else {
		for _, label := range d.changed {
			by := d.by[label]
			for _, f := range d.terms {
				d.weights.Data[int(f.Row)*d.width+label] += by * f.Factor
			}
		}
	}
	for _, label := range d.changed {
		d.by[label] = 0
	}
}
