package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomBytes returns n bytes from -127 to 127 at an unaligned place in memory. Random bytes surround
// them, so that a kernel that reads too far gets a wrong result.
func randomBytes(r *rand.Rand, n int) []int8 {
	offset := r.IntN(65)
	all := make([]int8, offset+n+64)
	extreme := r.IntN(4) == 0
	for i := range all {
		all[i] = int8(r.IntN(255) - 127)
		if extreme {
			all[i] = int8(r.IntN(2)*254 - 127)
		}
	}
	return all[offset : offset+n : offset+n]
}

func TestDotInt8(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		for n := range 600 {
			length, count := n%300, r.IntN(20)
			if n >= 300 {
				length = 64 * r.IntN(20)
			}
			query, rows := randomBytes(r, length), randomBytes(r, length*count)
			want := make([]int32, count)
			for i := range want {
				for p, q := range query {
					want[i] += int32(q) * int32(rows[i*length+p])
				}
			}
			got := make([]int32, count+5) // stale values and neighbours
			for i := range got {
				got[i] = 12345
			}
			k.DotInt8(got[:count], query, rows)
			if !slices.Equal(got[:count], want) || slices.ContainsFunc(got[count:], func(v int32) bool { return v != 12345 }) {
				t.Fatalf("%d rows of %d bytes: got %v, want %v and five times 12345", count, length, got, want)
			}
		}
	})
}

// TestDotInt8Longest tests the largest sum that the documentation allows.
func TestDotInt8Longest(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, _ *rand.Rand) {
		query := slices.Repeat([]int8{127}, 1<<17)
		rows := slices.Concat(query, query, query, slices.Repeat([]int8{-127}, len(query)))
		got, most := make([]int32, 4), int32(127*127<<17)
		if k.DotInt8(got, query, rows); !slices.Equal(got, []int32{most, most, most, -most}) {
			t.Errorf("got %v, want %d", got, most)
		}
	})
}

func TestDotInt8WrongShape(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Best().DotInt8(make([]int32, 2), make([]int8, 64), make([]int8, 127))
}

// TestGroup compares with the results of single queries.
func TestGroup(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		if k.NewGroup([][]int8{randomBytes(r, 63)}) != nil {
			t.Error("a group for a length that no routine takes")
		}
		for n := range 40 {
			length := 64 * (1 + n%20)
			rows, packed := randomBytes(r, GroupRows*length), randomBytes(r, GroupRows*length)
			queries := [][]int8{slices.Repeat([]int8{int8(127 - n%2*254)}, length)}
			for range n % (2*GroupSize + 1) {
				queries = append(queries, randomBytes(r, length))
			}
			g := k.NewGroup(queries)
			if g == nil {
				t.Skip("this kernel compares queries one by one")
			}
			var got [GroupSize * GroupRows]int32
			g.Pack(packed, rows)
			want := make([]int32, GroupRows)
			for i, q := range queries {
				if i%GroupSize == 0 {
					g.Dot(&got, i, packed)
				}
				Portable().DotInt8(want, q, rows)
				if got := got[i%GroupSize*GroupRows:][:GroupRows]; !slices.Equal(got, want) {
					t.Fatalf("query %d of %d, %d bytes: got %v, want %v", i, len(queries), length, got, want)
				}
			}
		}
	})
}

func TestReach(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		for n := range 65 {
			dots, rows := make([]int32, n), make([]Quantisation, n)
			for i := range dots {
				dots[i], rows[i] = int32(r.IntN(2e6)-1e6), Quantisation{r.Float32() / 1e3, r.Float32() / 100}
				if r.IntN(20) == 0 {
					rows[i].Scale = float32(math.NaN()) // of a damaged file: it is looked at
				}
			}
			for _, least := range []float32{float32(math.Inf(-1)), 0, .3, .35, .5} {
				b := Bound{Scale: 1e-3, Slope: 1.01, Slack: .002, Least: least}
				var want uint64
				for i, dot := range dots {
					product := float32(float32(float32(dot)*b.Scale) * rows[i].Scale)
					if off := float32(b.Slope*rows[i].Lost) + b.Slack; !(product+off < least) {
						want |= 1 << i
					}
				}
				if got := k.Reach(dots, rows, &b); got != want {
					t.Fatalf("%d rows, at least %v: got %b, want %b", n, least, got, want)
				}
			}
		}
	})
}

func FuzzDotInt8(f *testing.F) {
	f.Add(uint64(1), uint16(384), uint8(9))
	f.Add(uint64(2), uint16(65), uint8(4))
	f.Fuzz(func(t *testing.T, seed uint64, length uint16, count uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		query, rows := randomBytes(r, int(length)), randomBytes(r, int(length)*int(count))
		want, got := make([]int32, count), make([]int32, count)
		Portable().DotInt8(want, query, rows)
		for _, k := range Kernels() {
			if k.DotInt8(got, query, rows); !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", k, got, want)
			}
		}
	})
}

func TestQuantise(t *testing.T) {
	eachKernel(t, testQuantise)
}

func testQuantise(t *testing.T, k *Kernel, r *rand.Rand) {
	for n := range 200 {
		x := randoms(r, n)
		size := math.Exp(r.NormFloat64() * 20)
		if n%7 == 6 {
			size = 0
		}
		for i := range x {
			x[i] *= float32(size)
			if n%5 == 4 { // halves, which round to even
				x[i] = float32(r.IntN(255)-127) / 2
				x[0] = 127
			}
		}
		dst := slices.Repeat([]int8{99}, n+r.IntN(9))
		scale, lost := k.Quantise(dst, x)
		plain := make([]int8, len(dst))
		if same, _ := Portable().Quantise(plain, x); !slices.Equal(dst, plain) || scale != same {
			t.Fatalf("%d values: got %v times %g, want %v times %g", n, dst, scale, plain, same)
		}
		var top, square, want float64
		for i, v := range x {
			rest := float64(v) - float64(scale)*float64(dst[i])
			square += rest * rest
			want += float64(v) * float64(v)
			if top = max(top, math.Abs(float64(v))); dst[i] == -128 {
				t.Fatal("-128")
			}
		}
		if slices.ContainsFunc(dst[n:], func(v int8) bool { return v != 0 }) {
			t.Fatalf("%d values: %v is not filled up with zeros", n, dst)
		}
		if got, most := math.Sqrt(square), top/127/2*math.Sqrt(float64(n))*1.0001; top > 1e-30 && got > most {
			t.Fatalf("%d values: off by %g, and %g is the most", n, got, most)
		}
		if got := math.Sqrt(square); math.Abs(got-float64(lost)) > 1e-5*got+4*epsilon*math.Sqrt(want) {
			t.Fatalf("%d values: lost is %g, want %g", n, lost, got)
		}
	}
}

// TestQuantiseNearHalves tests products that become a half only by rounding. Where the compiler fuses multiplications
// with additions (arm64, GOAMD64=v3), plain Go would round them once instead of twice, and the bytes would depend on
// the machine.
func TestQuantiseNearHalves(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		for range 50 {
			x := make([]float32, 255)
			x[0] = 1 + r.Float32()
			inverse := 127 / x[0]
			for i := 1; i < len(x); i++ {
				x[i] = (float32(i) - 127.5) / inverse
			}
			got := make([]int8, len(x))
			k.Quantise(got, x)
			for i, v := range x {
				if want := math.RoundToEven(float64(float32(v * inverse))); float64(got[i]) != want {
					t.Fatalf("%v times %v: got %d, want %v", v, inverse, got[i], want)
				}
			}
		}
	})
}

func BenchmarkInt8(b *testing.B) {
	const length, count = 384, 64
	r := rand.New(rand.NewPCG(1, 2))
	query, rows, dst := make([]int8, length), make([]int8, length*count), make([]int32, count)
	copy(query, randomBytes(r, length))
	copy(rows, randomBytes(r, length*count))
	for _, k := range Kernels() {
		b.Run(fmt.Sprint("dot/", k), func(b *testing.B) {
			for b.Loop() {
				k.DotInt8(dst, query, rows)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/row")
		})
	}
	x := randoms(r, length)
	for _, k := range Kernels() {
		b.Run(fmt.Sprint("quantise/", k), func(b *testing.B) {
			for b.Loop() {
				k.Quantise(query, x)
			}
		})
	}
}

func TestAddRows(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		for cols := range 300 {
			const n = 9
			stride := cols + r.IntN(3)
			rows := View{Data: randoms(r, n*stride), Rows: n, Cols: cols, Stride: stride}
			dst := randoms(r, cols)
			terms := make([]Term, r.IntN(20))
			for i := range terms {
				terms[i] = Term{int32(r.IntN(n)), float32(r.NormFloat64())}
			}
			want, size := make([]float64, cols), make([]float64, cols)
			for j, x := range dst {
				want[j], size[j] = float64(x), math.Abs(float64(x))
				for _, term := range terms {
					product := float64(term.Factor) * float64(rows.Row(int(term.Row))[j])
					want[j] += product
					size[j] += math.Abs(product)
				}
			}
			k.AddRows(dst, rows, terms)
			for j, got := range dst {
				if bound := float64(len(terms)+1) * epsilon * size[j]; math.Abs(float64(got)-want[j]) > bound {
					t.Fatalf("%d columns, %d terms, column %d: got %v, want %v within %g", cols, len(terms), j, got, want[j], bound)
				}
			}
		}
	})
}

// A row can be added to itself.
func TestAddRowsInPlace(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *Kernel, r *rand.Rand) {
		x := randoms(r, 200)
		want := make([]float32, len(x))
		for i := range x {
			want[i] = x[i] * 1.5
		}
		k.AddRows(x, NewView(x, 1, len(x)), []Term{{0, .5}})
		for i := range x {
			if x[i] != want[i] {
				t.Fatalf("float %d: got %v, want %v", i, x[i], want[i])
			}
		}
	})
}

func TestAddRowsShapes(t *testing.T) {
	rows := NewView(make([]float32, 64), 2, 32)
	for name, call := range map[string]func(*Kernel){
		"columns": func(k *Kernel) { k.AddRows(make([]float32, 31), rows, []Term{{0, 1}}) },
		"row":     func(k *Kernel) { k.AddRows(make([]float32, 32), rows, []Term{{0, 1}, {2, 1}}) },
		"below 0": func(k *Kernel) { k.AddRows(make([]float32, 32), rows, []Term{{-1, 1}}) },
		"data":    func(k *Kernel) { k.AddRows(make([]float32, 32), NewView(make([]float32, 63), 2, 32), []Term{{1, 1}}) },
	} {
		eachKernel(t, func(t *testing.T, k *Kernel, _ *rand.Rand) {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call(k)
		})
	}
}
