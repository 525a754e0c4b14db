//go:build !amd64

package linear

import "github.com/racflow/racflow/plugins/internal/simd"

func hasTiles(*simd.Kernel) bool { return false }

func split(_, _ []float32, _, _, _ int) { panic("linear: no tiles") }

func multiplyTiles(_ *tileConfig, _, _ int, _, _, _ []float32, _ int, _ []float32, _, _ int, _ []float32, _ int) {
	panic("linear: no tiles")
}
