package linear

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/simd"
)

const (
	rowBlock   = 16      // rows that a goroutine takes at a time
	inputBlock = 32      // inputs
	floatBlock = 1 << 15 // floats of a vector of weights
	negligible = 1e-7    // the probability that is taken for 0
)

// problem is what training minimises: the mean negative log-likelihood of the examples
// and the squares of the weights, divided by 2·c·examples. Each number is computed by one
// goroutine in a fixed order, so that how many there are makes no difference.
type problem struct {
	*model
	examples []example
	c        float64     // as in scikit-learn
	residual []float32   // a row for each example: probabilities less the truth
	losses   []float64   // of the examples
	first    int         // input that not every example has
	having   [][]feature // by input from first on: the examples that have it
	memory   sync.Pool   // of *scratch
}

func newProblem(m *model, examples []example) *problem {
	p := &problem{
		model: m, examples: examples, residual: make([]float32, len(examples)*m.width),
		losses: make([]float64, len(examples)), first: m.dense(),
		memory: sync.Pool{New: func() any { return newScratch() }},
	}
	if len(examples) > 0 && examples[0].vector == nil {
		p.first = 0
	}
	counts := make([]int, m.inputs()-p.first)
	for _, e := range examples {
		for _, f := range e.features {
			counts[int(f.Row)-p.first]++
		}
	}
	p.having = make([][]feature, len(counts))
	for i, n := range counts {
		p.having[i] = make([]feature, 0, n)
	}
	for i, e := range examples {
		for _, f := range e.features {
			at := int(f.Row) - p.first
			p.having[at] = append(p.having[at], feature{Row: int32(i), Factor: f.Factor})
		}
	}
	return p
}

// evaluate returns the value at the model's weights, and sets g to the gradient.
func (p *problem) evaluate(g []float32) float64 {
	p.blocks(len(p.examples), rowBlock, p.predict)
	p.blocks(p.first, inputBlock, func(lo, hi int, s *scratch) { p.slopeDense(g, lo, hi, s) })
	residual := simd.NewView(p.residual, len(p.examples), p.width)
	p.blocks(len(p.having), inputBlock, func(lo, hi int, _ *scratch) {
		for i := lo; i < hi; i++ {
			to := g[(p.first+i)*p.width:][:p.width]
			clear(to)
			simd.Best().AddRows(to, residual, p.having[i])
		}
	})
	n := float64(len(p.examples))
	ridge := 1 / (p.c * n)
	p.each(len(g), func(lo, hi int) {
		for i, w := range p.weights[lo:hi] {
			g[lo+i] = float32(g[lo+i]*float32(1/n)) + float32(w*float32(ridge)) // not fused
		}
	})
	value := 0.0
	for _, l := range p.losses {
		value += l
	}
	return value/n + ridge/2*p.dot(p.weights, p.weights)
}

// predict computes the losses and residuals of examples.
func (p *problem) predict(lo, hi int, s *scratch) {
	p.score(p.residual[lo*p.width:hi*p.width], p.examples[lo:hi], s)
	for i := lo; i < hi; i++ {
		row, truth := p.residual[i*p.width:][:p.width], p.examples[i].label
		simd.Best().Softmax(row[:len(p.labels)], 1)
		p.losses[i] = loss(row[truth])
		for j := range row {
			if row[j] < negligible || j >= len(p.labels) {
				row[j] = 0
			}
		}
		row[truth]--
	}
}

func loss(probability float32) float64 { return -math.Log(max(float64(probability), negligible)) }

// slopeDense sets the gradient of inputs that every example has.
func (p *problem) slopeDense(g []float32, lo, hi int, s *scratch) {
	n := len(p.examples)
	x := floats(&s.inputs, (hi-lo)*n)
	for j, e := range p.examples {
		for i := lo; i < hi; i++ {
			if x[(i-lo)*n+j] = 1; i < p.dimension {
				x[(i-lo)*n+j] = e.vector[i]
			}
		}
	}
	s.matrix.PackCols(simd.NewView(p.residual, n, p.width)).
		Mul(simd.NewView(g[lo*p.width:], hi-lo, p.width), simd.NewView(x, hi-lo, n), &s.simd)
}

// dot is the product of two vectors as long as the weights.
func (p *problem) dot(a, b []float32) float64 {
	sums := make([]float64, (len(a)+floatBlock-1)/floatBlock)
	p.each(len(a), func(lo, hi int) { sums[lo/floatBlock] = float64(simd.Dot(a[lo:hi], b[lo:hi])) })
	sum := 0.0
	for _, s := range sums {
		sum += s
	}
	return sum
}

// add adds a multiple of x to y.
func (p *problem) add(y []float32, by float64, x []float32) {
	term := []feature{{Factor: float32(by)}}
	p.each(len(y), func(lo, hi int) { simd.Best().AddRows(y[lo:hi], simd.NewView(x[lo:hi], 1, hi-lo), term) })
}

// each calls work for the blocks of a vector.
func (p *problem) each(n int, work func(lo, hi int)) {
	p.blocks(n, floatBlock, func(lo, hi int, _ *scratch) { work(lo, hi) })
}

// blocks calls work for each block of n things, on as many goroutines as processors may
// run. Blocks do not depend on that number.
func (p *problem) blocks(n, size int, work func(lo, hi int, s *scratch)) {
	count := int64((n + size - 1) / size)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(int64(runtime.GOMAXPROCS(0)), count) {
		workers.Go(func() {
			s := p.memory.Get().(*scratch)
			defer p.memory.Put(s)
			for i := next.Add(1) - 1; i < count; i = next.Add(1) - 1 {
				work(int(i)*size, min(int(i+1)*size, n), s)
			}
		})
	}
	workers.Wait()
}
