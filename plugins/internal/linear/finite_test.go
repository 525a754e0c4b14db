package linear

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// TestInt8NotFinite: a row with a number that is not finite gives no finite result, wherever the number is. The rows
// beside it do not change.
func TestInt8NotFinite(t *testing.T) {
	const rows, depth, cols = 3, 83, 40
	inf := float32(math.Inf(1))
	eachUnit(t, func(t *testing.T, k *simd.Kernel, r *rand.Rand) {
		x, w, bias := randomView(r, rows, depth), randomView(r, cols, depth), randoms(r, cols)
		l := New(k, Int8, w, bias, nil)
		want := result(rows, cols)
		l.Mul(want, NewInput(k, Int8).Set(x, nil), 0)
		for _, bad := range []float32{float32(math.NaN()), inf, -inf} {
			for at := range depth {
				t.Run(fmt.Sprint(bad, " at ", at), func(t *testing.T) {
					before := x.Row(1)[at]
					defer func() { x.Row(1)[at] = before }()
					x.Row(1)[at] = bad
					got := result(rows, cols)
					l.Mul(got, NewInput(k, Int8).Set(x, nil), 0)
					for i := range rows {
						for j, v := range got.Row(i) {
							if i == 1 && v-v == 0 || i != 1 && v != want.Row(i)[j] {
								t.Fatalf("row %d, column %d: got %v, with finite numbers %v", i, j, v, want.Row(i)[j])
							}
						}
					}
				})
			}
		}
	})
}
