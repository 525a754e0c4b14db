package simd

// Term is a row of a matrix and the factor that it is multiplied by.
type Term struct {
	Row    int32
	Factor float32
}

// AddRows adds multiples of rows to dst, in the order of the terms: the product of a
// sparse vector and a matrix. dst has as many floats as the matrix has columns; it may be
// the one row that the terms name, and otherwise must not overlap the matrix. Wrong shapes
// and rows panic.
func (k *Kernel) AddRows(dst []float32, rows View, terms []Term) {
	if len(dst) != rows.Cols {
		panic("simd: row and matrix differ in size")
	}
	if len(terms) == 0 || len(dst) == 0 {
		return
	}
	last := terms[0].Row
	for _, t := range terms {
		if last = max(last, t.Row); t.Row < 0 {
			panic("simd: no row of the matrix")
		}
	}
	if int(last) >= rows.Rows {
		panic("simd: no row of the matrix")
	}
	rows.Row(int(last)) // panics where the data is too short
	n := len(dst) / rowBlock * rowBlock
	if n > 0 {
		k.addRows(dst[:n], rows.Data, rows.Stride, terms)
	}
	if n < len(dst) {
		addRowsPortable(dst[n:], rows.Data[n:], rows.Stride, terms)
	}
}

// rowBlock is what the length of dst is a multiple of, for the functions in assembly.
const rowBlock = 32

func addRowsPortable(dst, rows []float32, stride int, terms []Term) {
	for _, t := range terms {
		row := rows[int(t.Row)*stride:][:len(dst)]
		for j, x := range row {
			dst[j] += t.Factor * x
		}
	}
}
