package linear

import (
	"sync"

	"github.com/racflow/racflow/plugins/internal/simd"
)

var units sync.Map // of []*unit, by kernel

// unitsFor lists the units of a kernel, fastest first; the last one is plain Go.
func unitsFor(k *simd.Kernel) []*unit {
	us, ok := units.Load(k)
	if !ok {
		us, _ = units.LoadOrStore(k, append(unitsOf(k), portableInt8))
	}
	return us.([]*unit)
}

// unitFor returns the fastest unit of a kernel.
func unitFor(k *simd.Kernel) *unit { return unitsFor(k)[0] }
