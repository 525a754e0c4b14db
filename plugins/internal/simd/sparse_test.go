package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

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
