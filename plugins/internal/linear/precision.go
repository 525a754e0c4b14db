package linear

import (
	"fmt"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// Precision is the number format in which a layer multiplies.
type Precision string

// The precisions.
const (
	Float32 Precision = "float32"
	Int8    Precision = "int8"
)

// Check returns an error for anything but the two precisions.
func (p Precision) Check() error {
	switch p {
	case Float32, Int8:
		return nil
	}
	return fmt.Errorf("precision %q is neither float32 nor int8", string(p))
}

// Fast reports whether layers of int8 are faster than layers of float32 with kernel k, which depends on the
// processor's units.
func Fast(k *simd.Kernel) bool { return unitFor(k).fast }

// unit is an instruction set for int8 products.
type unit struct {
	name  string
	fast  bool // faster than float32 on the same processor
	size  int  // bytes of a term in a row of the input
	group int  // number of terms of a column that are adjacent in the weights
	cols  int  // outputs that mul computes at a time
	lanes int  // bounds, multiply and quantise take a positive multiple of this many floats

	// mul adds up the products of all rows with cols columns of weights.
	mul func(p *product)

	// bounds returns the lowest and the highest of x. If a number is not finite, at least one of them is not finite.
	bounds func(x []float32) (low, high float32)
	// multiply sets dst to x times factors, element by element.
	multiply func(dst, x, factors []float32)
	// quantise writes (x-low)·inverse as integers from 0 to 255.
	quantise func(dst []byte, x []float32, low, inverse float32)
}

// product is the work of one call of unit.mul. Terms beyond the depth are zero in b.
type product struct {
	rows  int
	steps int // of 16 bytes of a row of a, and of as many rows of 128 bytes of b
	a     []byte
	lda   int // bytes from row to row
	b     []byte

	// The result goes to c. It is added to from, which is the bias or c itself. Rows are ldc and ldfrom floats apart.
	c      []float32
	ldc    int
	from   []float32
	ldfrom int

	// By row: its scale and lowest value. By column: its scale, and the sum of its weights times that scale.
	scale, low       []float32
	colScale, colSum []float32
}

// paddedTerms returns the depth in memory, a multiple of the step of every unit.
func paddedTerms(depth int) int { return roundUp(depth, 64) }

func roundUp(n, step int) int { return (n + step - 1) / step * step }
