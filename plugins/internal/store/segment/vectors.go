package segment

import (
	"math"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// Vectors is a list of vectors of one dimension. Vectors that are mostly 0, such as hashed features of short texts,
// are stored as sparse: only their non-zero numbers are kept. The first vector decides.
type Vectors struct {
	Dimension int
	Dense     []float32   // one after another; nil if sparse
	Numbers   []simd.Term // the non-zero numbers with their dimensions, rising within a vector
	Ends      []uint64    // where the numbers of each vector end; nil if dense
}

// sparseShare is the least number of dimensions per non-zero number for a vector to be stored as sparse. From there
// on, searches are faster, too.
const sparseShare = 8

// sparse reports whether the vectors are sparse.
func (v *Vectors) sparse() bool { return v.Ends != nil }

// mostlyZero reports whether a vector should be stored as sparse.
func mostlyZero(x []float32) bool {
	n := 0
	for _, f := range x {
		if math.Float32bits(f) != 0 {
			n++
		}
	}
	return n > 0 && n*sparseShare <= len(x)
}

// Append adds a vector.
func (v *Vectors) Append(x []float32) {
	if v.Dimension == 0 && mostlyZero(x) {
		v.Ends = []uint64{}
	}
	if v.Dimension = len(x); !v.sparse() {
		v.Dense = append(v.Dense, x...)
		return
	}
	v.Numbers = appendNumbersOf(v.Numbers, x)
	v.Ends = append(v.Ends, uint64(len(v.Numbers)))
}

func appendNumbersOf(to []simd.Term, x []float32) []simd.Term {
	for i, f := range x {
		if math.Float32bits(f) != 0 {
			to = append(to, simd.Term{Row: int32(i), Factor: f})
		}
	}
	return to
}

// At returns a vector. A dense vector shares the memory; a sparse one is a copy.
func (v *Vectors) At(i int) []float32 {
	if !v.sparse() {
		return v.Dense[i*v.Dimension:][:v.Dimension:v.Dimension]
	}
	x := make([]float32, v.Dimension)
	for _, n := range v.NumbersAt(i) {
		x[n.Row] = n.Factor
	}
	return x
}

// NumbersAt returns the non-zero numbers of a sparse vector. It returns none if the file is damaged, so that their
// dimensions are always in range.
func (v *Vectors) NumbersAt(i int) []simd.Term {
	from := uint64(0)
	if i > 0 {
		from = v.Ends[i-1]
	}
	if to := v.Ends[i]; from <= to && to <= uint64(len(v.Numbers)) {
		numbers := v.Numbers[from:to:to]
		for _, n := range numbers {
			if uint(n.Row) >= uint(v.Dimension) {
				return nil
			}
		}
		return numbers
	}
	return nil
}

// bytes returns about how many bytes a vector takes.
func (v *Vectors) bytes(i int) int {
	if !v.sparse() {
		return 4 * v.Dimension
	}
	return 8 + 8*len(v.NumbersAt(i))
}

// dot returns the product of a query and a vector. For a sparse vector, the sum runs in the order of the dimensions.
func (v *Vectors) dot(k *simd.Kernel, query []float32, i int) float32 {
	if !v.sparse() {
		return k.Dot(query, v.At(i))
	}
	sum := float32(0)
	for _, n := range v.NumbersAt(i) {
		sum += query[n.Row] * n.Factor
	}
	return sum
}
