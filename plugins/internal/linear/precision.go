package linear

import (
	"fmt"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// Precision says in which numbers a layer multiplies.
type Precision string

// The precisions.
const (
	Float32 Precision = "float32"
	Int8    Precision = "int8"
)

// Check is an error for anything but the two precisions.
func (p Precision) Check() error {
	switch p {
	case Float32, Int8:
		return nil
	}
	return fmt.Errorf("precision %q is neither float32 nor int8", string(p))
}

// Fast reports whether layers of int8 are faster than those of float32 with kernel k:
// whether the processor has a unit for them.
func Fast(k *simd.Kernel) bool { return unitFor(k).fast }

// unit is an instruction set for products of int8.
type unit struct {
	name  string
	fast  bool // faster than float32 on the same processor
	size  int  // bytes of a term in a row of the input
	group int  // terms of a column that stand side by side in the weights
	cols  int  // outputs that mul computes at a time
	lanes int  // bounds, multiply and quantise take a multiple of so many floats, not none

	// mul adds up the products of all rows with cols columns of weights.
	mul func(p *product)

	// bounds returns the lowest and the highest of x, which are not both finite where a
	// number is not.
	bounds func(x []float32) (low, high float32)
	// multiply sets dst to x times factors, one by one.
	multiply func(dst, x, factors []float32)
	// quantise writes (x-low)·inverse in whole numbers from 0 to 255.
	quantise func(dst []byte, x []float32, low, inverse float32)
}

// product is the work of one call of unit.mul. Terms beyond the depth are zero in b.
type product struct {
	rows  int
	steps int // of 16 bytes of a row of a, and as many rows of 128 bytes of b
	a     []byte
	lda   int // bytes from row to row
	b     []byte

	// The result goes to c; before that it is added to from, the bias or c itself. Rows
	// are ldc and ldfrom floats apart.
	c      []float32
	ldc    int
	from   []float32
	ldfrom int

	// A row's scale and lowest value, a column's scale and the sum of its weights times
	// that scale.
	scale, low       []float32
	colScale, colSum []float32
}

// paddedTerms returns the depth in memory, a multiple of what any unit takes in a step.
func paddedTerms(depth int) int { return roundUp(depth, 64) }

func roundUp(n, step int) int { return (n + step - 1) / step * step }
