// Package startup keeps the importing program from collecting garbage before main: memory that
// packages allocate during initialisation stays in use.
//
// It imports next to nothing. Go initialises packages in the order of their import paths, once their
// imports are initialised. So nearly all packages that allocate come after it.
package startup

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	usual = 100 // GOGC unless somebody sets it
	most  = 400 // the first collection is at 16 MiB instead of 4
)

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(most)
	}
}

// Over restores the usual GOGC after the next garbage collection.
func Over() {
	if os.Getenv("GOGC") == "" {
		first := new([1 << 10]byte)
		runtime.AddCleanup(first, func(percent int) { debug.SetGCPercent(percent) }, usual)
	}
}
