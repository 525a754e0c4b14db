//go:build !amd64

package linear

import "github.com/racflow/racflow/plugins/internal/simd"

func unitsOf(*simd.Kernel) []*unit { return nil }
