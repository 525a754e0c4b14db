package linear

import (
	"cmp"
	"slices"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// model is a linear layer: scores = Σ x[i]·weights[i].
type model struct {
	labels    []string // sorted
	dimension int      // of the vectors
	vocabulary
	width int // of a row of weights: the labels, rounded up for the processor
	// weights has a row for each dimension of the vectors, one for the constant
	// input, and one for each bucket that is used.
	weights []float32
	scale   float32 // of the scores, once the weights are learnt
}

// width is the length of a row of weights for that many labels.
func width(labels int) int { return (labels + simd.PanelCols - 1) / simd.PanelCols * simd.PanelCols }

func newModel(labels []string, dimension int, idf []float32) *model {
	m := &model{labels: labels, dimension: dimension, width: width(len(labels)), scale: 1}
	m.vocabulary = newVocabulary(idf, m.dense())
	m.weights = make([]float32, m.inputs()*m.width)
	return m
}

// dense is the number of inputs that every row has: the vector's, and the constant 1.
func (m *model) dense() int  { return m.dimension + 1 }
func (m *model) inputs() int { return m.dense() + m.used }

// example is a row or item as the model sees it.
type example struct {
	vector   []float32 // nil: inputs stand for it
	inputs   []feature // of the vector, before features are weighed; then they are among those
	features []feature
	label    int // -1: of an item
}

// scratch is memory for products. One goroutine at a time may use it.
type scratch struct {
	matrix    *simd.Matrix
	simd      simd.Scratch
	inputs, r []float32
}

func newScratch() *scratch { return &scratch{matrix: simd.Best().NewMatrix()} }

func floats(s *[]float32, n int) []float32 {
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	return (*s)[:n]
}

// row returns memory for a row.
func (s *scratch) row(width int) []float32 { return floats(&s.r, width) }

// score sets dst to the scores of examples, a row of m.width each.
func (m *model) score(dst []float32, examples []example, s *scratch) {
	if dense := m.dense(); examples[0].vector == nil {
		clear(dst)
	} else {
		x := floats(&s.inputs, len(examples)*dense)
		for i, e := range examples {
			to := x[i*dense:][:dense]
			copy(to, e.vector)
			to[m.dimension] = 1
		}
		s.matrix.PackCols(simd.NewView(m.weights, dense, m.width)).
			Mul(simd.NewView(dst, len(examples), m.width), simd.NewView(x, len(examples), dense), &s.simd)
	}
	weights := simd.NewView(m.weights, m.inputs(), m.width)
	for i, e := range examples {
		simd.Best().AddRows(dst[i*m.width:][:m.width], weights, e.features)
	}
}

// best returns the indices of the n greatest values, greatest first.
func best(values []float32, n int) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return order[:min(n, len(order))]
}
