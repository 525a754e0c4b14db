package linear

import (
	"math"
	"math/rand/v2"
	"sync"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// unitFor returns the fastest unit of kernel k for a precision below float32.
func unitFor(k *simd.Kernel, p Precision) *unit { return unitsFor(k, p)[0] }

type choice struct {
	kernel    *simd.Kernel
	precision Precision
}

var chosen sync.Map // of []*unit, by choice

// unitsFor lists the units of a kernel, fastest first; the last one is plain Go. Units that
// were never executed where they were written are compared with that first.
func unitsFor(k *simd.Kernel, p Precision) []*unit {
	if us, ok := chosen.Load(choice{k, p}); ok {
		return us.([]*unit)
	}
	plain := portableInt8
	if p == BFloat16 {
		plain = portableBFloat16
	}
	us, _ := chosen.LoadOrStore(choice{k, p}, proven(k, append(unitsOf(k, p), plain)))
	return us.([]*unit)
}

// proven leaves out units that do not compute what the last one does.
func proven(k *simd.Kernel, us []*unit) []*unit {
	plain := us[len(us)-1]
	if first := us[0]; first.unproven && !agree(k, first, plain) {
		next := *us[1]
		next.refused = first.name
		us = append([]*unit{&next}, us[2:]...)
	}
	return us
}

// agree compares two units on small products of shapes at which blocks, panels and steps
// end: all bits of int8, and of bfloat16 up to the order of additions.
func agree(k *simd.Kernel, u, plain *unit) bool {
	r := rand.New(rand.NewPCG(1, 2))
	for _, shape := range [][3]int{{1, 64, 32}, {16, 65, 33}, {17, 130, 40}, {33, 200, 96}, {64, 31, 1}} {
		x, w := randomMatrix(r, shape[0], shape[1]), randomMatrix(r, shape[2], shape[1])
		bias := randomMatrix(r, 1, shape[2]).Data
		var results [2][]float32
		for i, u := range []*unit{u, plain} {
			results[i] = make([]float32, shape[0]*shape[2])
			l, in := newPacked(k, u, w, bias, nil), &Input{kernel: k, unit: u}
			l.Mul(simd.NewView(results[i], shape[0], shape[2]), in.Reset(shape[0], shape[1]).Set(0, x), 0)
		}
		for i, got := range results[0] {
			want := results[1][i]
			if u.quantise != nil && got != want || !(math.Abs(float64(got-want)) <= 1e-4) {
				return false
			}
		}
	}
	return true
}

func randomMatrix(r *rand.Rand, rows, cols int) simd.View {
	m := simd.NewView(make([]float32, rows*cols), rows, cols)
	for i := range m.Data {
		m.Data[i] = float32(r.NormFloat64())
	}
	return m
}
