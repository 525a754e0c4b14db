package encoder

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestAttend compares attention in blocks with attention by its definition, in texts before and after others, and
// with windows from one token to more tokens than exist. It also bounds the scores in memory.
func TestAttend(t *testing.T) {
	must.NoRace(t)
	const size, before, behind = 8, 5, 20
	for _, k := range simd.Kernels() {
		m := &model{kernel: k}
		w := m.newWorkspace()
		r := rand.New(rand.NewPCG(1, 2))
		for _, shape := range []struct{ tokens, window int }{{1, 0}, {700, 0}, {1200, 0}, {1, 3}, {40, 1}, {700, 64}, {1100, 500}, {1200, 5000}} {
			t.Run(fmt.Sprintf("%v %v", k, shape), func(t *testing.T) {
				n := shape.tokens
				matrix := func(rows int) simd.View {
					v := simd.NewView(make([]float32, rows*size), rows, size)
					for i := range v.Data {
						v.Data[i] = float32(r.NormFloat64())
					}
					return v
				}
				all := before + n + behind
				h := transformerHead{window: shape.window, query: matrix(all), key: matrix(all + keyBlock - 1), value: matrix(all), context: matrix(all)}
				w.scores = nil
				m.attend(h, before, n, w)
				if most := max(maxScores, minRows*(n+keyBlock)); cap(w.scores) > most {
					t.Errorf("%d scores exist at a time, want %d at most", cap(w.scores), most)
				}
				for i := range n {
					sum, want := 0.0, make([]float64, size)
					for j := range n {
						if shape.window > 0 && max(i-j, j-i) > shape.window {
							continue
						}
						weight := math.Exp(float64(simd.Dot(h.query.Row(before+i), h.key.Row(before+j))) / math.Sqrt(size))
						sum += weight
						for c, v := range h.value.Row(before + j) {
							want[c] += weight * float64(v)
						}
					}
					for c, got := range h.context.Row(before + i) {
						if math.Abs(float64(got)-want[c]/sum) > 1e-5 {
							t.Fatalf("token %d, column %d: got %v, want %v", i, c, got, want[c]/sum)
						}
					}
				}
			})
		}
	}
}
