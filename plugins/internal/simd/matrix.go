package simd

// View is a matrix inside a slice: element (i, j) is Data[i*Stride+j].
type View struct {
	Data       []float32
	Rows, Cols int
	Stride     int // floats from one row to the next, at least Cols
}

// NewView returns a rows by cols view of data without gaps between the rows.
func NewView(data []float32, rows, cols int) View {
	return View{Data: data, Rows: rows, Cols: cols, Stride: cols}
}

// Row returns row i.
func (v View) Row(i int) []float32 { return v.Data[i*v.Stride:][:v.Cols] }

// Matrix is the right-hand side of a product, in an order that one kernel reads fast. The zero value is not usable;
// [Kernel.NewMatrix] creates one. After packing, several Mul may use it concurrently.
type Matrix struct {
	kernel      *Kernel
	depth, cols int // the product is rows(x) by cols, over depth terms

	// Every tileCols columns form a panel of depth rows. Rows are stride floats apart, panels are step floats apart.
	panels       []float32
	stride, step int
	memory       []float32 // memory of panels that are not the caller's
	bias         []float32
}

// NewMatrix returns an empty matrix for kernel k. Packing it again reuses its memory.
func (k *Kernel) NewMatrix() *Matrix { return &Matrix{kernel: k} }

// PackRows fills m so that Mul computes x·wᵀ + bias, the layout of a linear
// layer: w has a row for every output. A nil bias means zero.
func (m *Matrix) PackRows(w View, bias []float32) *Matrix {
	if bias != nil && len(bias) != w.Rows {
		panic("simd: bias and matrix differ in size")
	}
	m.resize(w.Cols, w.Rows)
	copy(m.bias, bias)
	k, width := m.kernel, m.kernel.tileCols
	whole := k.whole(m.depth)
	for j := 0; j < w.Rows; {
		panel, n := m.panels[j/width*m.step:][j%width:], 1
		if first := w.Row(j); j+k.lanes <= w.Rows && whole > 0 {
			n = k.lanes
			w.Row(j + n - 1) // panics if the data is too short
			k.transpose(panel, width, first, w.Stride, whole)
		} else {
			transposePortable(panel, width, first, 0, whole)
		}
		for i := range n {
			for p, x := range w.Row(j + i)[whole:] {
				panel[(whole+p)*width+i] = x
			}
		}
		j += n
	}
	return m
}

// PackCols fills m so that Mul computes x·w: w has a column for every output. If the columns of w fill whole tiles, m
// uses the data of w itself.
func (m *Matrix) PackCols(w View) *Matrix {
	width := m.kernel.tileCols
	if w.Cols%width == 0 && w.Rows > 0 {
		w.Row(w.Rows - 1) // panics if the data is too short
		m.depth, m.cols, m.panels, m.stride, m.step = w.Rows, w.Cols, w.Data, w.Stride, width
		m.bias = zeroed(m.bias, w.Cols)
		return m
	}
	m.resize(w.Rows, w.Cols)
	for p := range w.Rows {
		row := w.Row(p)
		for j := 0; j < len(row); j += width {
			copy(m.panels[j/width*m.step+p*width:][:width], row[j:])
		}
	}
	return m
}

// PanelCols is a common multiple of all kernels' tile widths.
const PanelCols = 32

// Part returns the matrix of the terms from first on, and of cols outputs from col on, a multiple of [PanelCols]. It
// uses the same memory. The bias belongs to the first term.
func (m *Matrix) Part(first, terms, col, cols int) *Matrix {
	p := *m
	p.depth, p.cols = terms, cols
	p.panels, p.bias = m.panels[col/m.kernel.tileCols*m.step+first*m.stride:], m.bias[col:]
	if first > 0 {
		p.bias = make([]float32, roundUp(cols, m.kernel.tileCols))
	}
	return &p
}

// resize sets the shape, with panels in m's memory. Outputs beyond cols, up to a whole tile, are computed from zeros
// and discarded.
func (m *Matrix) resize(depth, cols int) {
	width := m.kernel.tileCols
	m.depth, m.cols, m.stride, m.step = depth, cols, width, depth*width
	padded := roundUp(cols, width)
	if cols == padded {
		m.memory = grow(m.memory, padded*depth)
	} else {
		m.memory = zeroed(m.memory, padded*depth)
	}
	m.panels = m.memory
	m.bias = zeroed(m.bias, padded)
}

// Scratch is memory that Mul needs for the edges of a product. The zero value
// is ready; one goroutine at a time may use it.
type Scratch struct{ x, dst, tile []float32 }

// blockFloats bounds the rows of x that Mul processes before the next column panel, so that they stay in the
// second-level cache.
const blockFloats = 320 << 10

// Mul sets dst to x·m plus the bias. dst is x.Rows by the outputs of m; it must
// not overlap x. Wrong shapes panic.
func (m *Matrix) Mul(dst, x View, s *Scratch) {
	k := m.kernel
	if nothingIn(dst, x, m.depth, m.cols) {
		return
	}
	if x.Rows < k.rowStep {
		s.padded(dst, x, k.rowStep, m.Mul)
		return
	}
	s.tile = grow(s.tile, k.tileRows*k.tileCols)
	block := max(blockFloats/max(m.depth, 1)/k.tileRows, 1) * k.tileRows
	for top := 0; top < x.Rows; top += block {
		end := min(top+block, x.Rows)
		for col := 0; col < m.cols; col += k.tileCols {
			for row := top; row < end; {
				// The last rows may overlap the rows above; these get the same results again.
				rows := min(k.tileRows, roundUp(end-row, k.rowStep), x.Rows/k.rowStep*k.rowStep)
				m.mulTile(dst, x, min(row, x.Rows-rows), rows, col, s.tile)
				row += rows
			}
		}
	}
}

// nothingIn panics if the shapes of a product do not fit, and reports whether there is nothing to compute.
func nothingIn(dst, x View, depth, cols int) (nothing bool) {
	if x.Cols != depth || dst.Cols != cols || dst.Rows != x.Rows {
		panic("simd: shapes of a product do not fit")
	}
	if x.Rows == 0 || cols == 0 {
		return true
	}
	x.Row(x.Rows - 1)     // panics if the data is too short, since
	dst.Row(dst.Rows - 1) // the assembly would read and write beyond it
	return false
}

// mulTile computes one tile of dst. It uses tile as a buffer if the result extends beyond dst.
func (m *Matrix) mulTile(dst, x View, row, rows, col int, tile []float32) {
	k := m.kernel
	a, b, bias := x.Data[row*x.Stride:], m.panels[col/k.tileCols*m.step:], m.bias[col:]
	if col+k.tileCols <= dst.Cols {
		k.tile(rows, m.depth, a, x.Stride, b, m.stride, dst.Data[row*dst.Stride+col:], dst.Stride, bias)
		return
	}
	k.tile(rows, m.depth, a, x.Stride, b, m.stride, tile, k.tileCols, bias)
	for i := range rows {
		copy(dst.Row(row + i)[col:], tile[i*k.tileCols:][:k.tileCols])
	}
}

// padded multiplies fewer rows than a kernel can process at once, using a copy with zeros below.
func (s *Scratch) padded(dst, x View, rows int, mul func(dst, x View, s *Scratch)) {
	s.x, s.dst = zeroed(s.x, rows*x.Cols), grow(s.dst, rows*dst.Cols)
	high, result := NewView(s.x, rows, x.Cols), NewView(s.dst, rows, dst.Cols)
	for i := range x.Rows {
		copy(high.Row(i), x.Row(i))
	}
	mul(result, high, s)
	for i := range x.Rows {
		copy(dst.Row(i), result.Row(i))
	}
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// grow returns a slice of n floats: s itself if it is large enough.
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
