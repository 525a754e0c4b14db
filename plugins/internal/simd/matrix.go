package simd

// View is a matrix inside a slice: element (i, j) is Data[i*Stride+j].
type View struct {
	Data       []float32
	Rows, Cols int
	Stride     int // floats from one row to the next, at least Cols
}

// NewView returns rows by cols of data without gaps between the rows.
func NewView(data []float32, rows, cols int) View {
	return View{Data: data, Rows: rows, Cols: cols, Stride: cols}
}

// Row returns row i.
func (v View) Row(i int) []float32 { return v.Data[i*v.Stride:][:v.Cols] }

// Matrix is the right-hand side of a product, kept in the order in which one
// kernel reads it. The zero value is not usable; [Kernel.NewMatrix] makes one.
// After packing it is safe for concurrent use by several Mul.
type Matrix struct {
	kernel      *Kernel
	depth, cols int // the product is rows(x) by cols, over depth terms
	panels      []float32
	bias        []float32
}

// NewMatrix returns an empty matrix for kernel k. Packing it again reuses its memory.
func (k *Kernel) NewMatrix() *Matrix { return &Matrix{kernel: k} }

// PackRows fills m so that Mul computes x·wᵀ + bias, the layout of a linear
// layer: w has a row for every output. A nil bias means zero.
func (m *Matrix) PackRows(w View, bias []float32) *Matrix {
	m.resize(w.Cols, w.Rows, bias)
	width := m.kernel.tileCols
	for j := range w.Rows {
		panel := m.panels[j/width*width*m.depth:][j%width:]
		for p, x := range w.Row(j) {
			panel[p*width] = x
		}
	}
	return m
}

// PackCols fills m so that Mul computes x·w: w has a column for every output.
func (m *Matrix) PackCols(w View) *Matrix {
	m.resize(w.Rows, w.Cols, nil)
	width := m.kernel.tileCols
	for p := range w.Rows {
		row := w.Row(p)
		for j := 0; j < len(row); j += width {
			copy(m.panels[j*m.depth+p*width:][:width], row[j:])
		}
	}
	return m
}

// resize sets the shape. Outputs beyond cols, up to a whole tile, are computed
// from zeros and thrown away.
func (m *Matrix) resize(depth, cols int, bias []float32) {
	if bias != nil && len(bias) != cols {
		panic("simd: bias and matrix differ in size")
	}
	m.depth, m.cols = depth, cols
	padded := roundUp(cols, m.kernel.tileCols)
	m.panels = zeroed(m.panels, padded*depth)
	m.bias = zeroed(m.bias, padded)
	copy(m.bias, bias)
}

// Scratch is memory that Mul needs for the edges of a product. The zero value
// is ready; one goroutine at a time may use it.
type Scratch struct{ x, tile []float32 }

// blockFloats bounds the rows of x that Mul works through before it goes on to
// the next column panel, so that they stay in the second-level cache.
const blockFloats = 96 << 10

// Mul sets dst to x·m plus the bias. dst is x.Rows by the outputs of m; it must
// not overlap x. Wrong shapes panic.
func (m *Matrix) Mul(dst, x View, s *Scratch) {
	if x.Cols != m.depth || dst.Cols != m.cols || dst.Rows != x.Rows {
		panic("simd: shapes of a product do not fit")
	}
	if x.Rows == 0 || m.cols == 0 {
		return
	}
	x.Row(x.Rows - 1)     // panics where the data is too short, since
	dst.Row(dst.Rows - 1) // the assembly would read and write beyond it
	high := m.kernel.tileRows
	whole := x.Rows / high * high
	if whole < x.Rows {
		s.padRows(x, whole, high)
	}
	s.tile = grow(s.tile, high*m.kernel.tileCols)
	block := max(blockFloats/max(m.depth, 1)/high, 1) * high
	for top := 0; top < x.Rows; top += block {
		for col := 0; col < m.cols; col += m.kernel.tileCols {
			for row := top; row < min(top+block, whole); row += high {
				m.mulTile(dst, row, col, x.Data[row*x.Stride:], x.Stride, s.tile)
			}
			if whole < x.Rows && whole < top+block {
				m.mulTile(dst, whole, col, s.x, m.depth, s.tile)
			}
		}
	}
}

// mulTile computes one tile of dst, by way of tile where it sticks out of dst.
func (m *Matrix) mulTile(dst View, row, col int, a []float32, lda int, tile []float32) {
	k := m.kernel
	b, bias := m.panels[col*m.depth:], m.bias[col:]
	if row+k.tileRows <= dst.Rows && col+k.tileCols <= dst.Cols {
		k.tile(m.depth, a, lda, b, dst.Data[row*dst.Stride+col:], dst.Stride, bias)
		return
	}
	k.tile(m.depth, a, lda, b, tile, k.tileCols, bias)
	for i := row; i < min(row+k.tileRows, dst.Rows); i++ {
		copy(dst.Row(i)[col:], tile[(i-row)*k.tileCols:][:k.tileCols])
	}
}

// padRows copies the rows of x from first on into s.x and adds zeros up to high
// rows. The copy keeps the kernel from reading behind the end of x.
func (s *Scratch) padRows(x View, first, high int) {
	s.x = zeroed(s.x, high*x.Cols)
	for i := first; i < x.Rows; i++ {
		copy(s.x[(i-first)*x.Cols:], x.Row(i))
	}
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// grow returns a slice of n floats, s itself where it is large enough.
func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}

func zeroed(s []float32, n int) []float32 {
	s = grow(s, n)
	clear(s)
	return s
}
