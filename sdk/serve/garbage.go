package serve

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// mostGarbage is about how many bytes of garbage a process collects before it
	// is cleared away, unless that is a small part of what it holds.
	mostGarbage = 64 << 20

	mostPercent, leastPercent = 400, 50 // of garbage, to what is held
)

// boundGarbage sets when garbage is cleared away. Batches are short-lived garbage,
// and to let it grow to four times what is held saves time. Beside a store that is
// at work on a large commit that would be gigabytes.
func boundGarbage() {
	last := mostPercent
	debug.SetGCPercent(last)
	afterCollections(func() {
		held := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(held)
		if held[0].Value.Kind() != metrics.KindUint64 {
			return
		}
		if percent := garbagePercent(held[0].Value.Uint64()); percent != last {
			last = percent
			debug.SetGCPercent(percent)
		}
	})
}

// garbagePercent is how much garbage there may be beside so many bytes that are
// held.
func garbagePercent(held uint64) int {
	return int(min(max(mostGarbage*100/max(held, 1), leastPercent), mostPercent))
}

// afterCollections calls do after each collection of garbage.
func afterCollections(do func()) {
	type sentinel struct{ self *int } // with a pointer it is an object of its own
	runtime.SetFinalizer(&sentinel{new(int)}, func(*sentinel) {
		do()
		afterCollections(do)
	})
}
