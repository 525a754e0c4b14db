package row

import (
	"math"
	"slices"
)

const (
	// MaxRows bounds the rows of a collection, deleted ones counted until they are
	// merged away.
	MaxRows = 1<<31 - 1<<16
	// MaxDimension bounds the dimension of vectors.
	MaxDimension = 1 << 16
)

// Row is an entry without its vector; meta is encoded.
type Row struct {
	Sequence                             uint64
	ID, Label, Hash, Context, Text, Meta string
}

// Columns are the strings of a row, in the order in which a put has them.
func (r *Row) Columns() [6]*string {
	return [6]*string{&r.ID, &r.Label, &r.Hash, &r.Context, &r.Text, &r.Meta}
}

// Size is what a row takes in a log, in bytes.
func (r *Row) Size(dimension int) int64 {
	n := 8 + 4*dimension
	for _, column := range r.Columns() {
		n += 4 + len(*column)
	}
	return int64(n)
}

// Batch is the rows of a put.
type Batch struct {
	Rows    []Row
	Vectors []float32 // normalised, one after another
}

// Change is a put or a delete, as it is staged, logged and applied.
type Change struct {
	Put    *Batch
	Delete []string
}

// NormTolerance is how far a squared norm may be from 1 for a vector to be kept
// as it was given: embedders hand in normalised ones, which come back unchanged.
const NormTolerance = 1e-6

// Normalise appends x with norm 1 to dst, or as it is if all of x is 0. It
// reports false if x holds NaN or an infinity.
func Normalise(dst, x []float32) ([]float32, bool) {
	var square float64
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	if math.IsNaN(square) || math.IsInf(square, 0) {
		return dst, false
	}
	if square == 0 || math.Abs(square-1) < NormTolerance {
		return append(dst, x...), true
	}
	scale := 1 / math.Sqrt(square)
	for _, v := range x {
		dst = append(dst, float32(float64(v)*scale))
	}
	return dst, true
}

// IsZero reports whether a vector has no direction.
func IsZero(x []float32) bool { return !slices.ContainsFunc(x, func(v float32) bool { return v != 0 }) }
