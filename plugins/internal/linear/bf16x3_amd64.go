package linear

import "github.com/racflow/racflow/plugins/internal/simd"

// hasTiles reports whether layers of kernel k multiply with the tiles of AMX.
func hasTiles(k *simd.Kernel) bool { return k.String() == "amx" }

// split writes rows of x, of so many steps, as bf16x3.
//
//go:noescape
func split(dst, x []float32, rows, steps, ldx int)

//go:noescape
func multiplyTiles(config *tileConfig, pairs, steps int, a, b, c []float32, ldc int, from []float32, ldfrom, rows int, next []float32, chunks int)
