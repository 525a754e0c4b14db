// Package startup keeps a program that imports it from collecting garbage before main: what
// packages make while they are initialised stays in use.
//
// It imports next to nothing. Go initialises packages in the order of their import paths once
// their imports are, so nearly all that allocate come after it.
package startup

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	usual = 100 // GOGC where nobody sets it
	most  = 400 // the first collection is at 16 MiB instead of 4
)

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(most)
	}
}

// Over makes the first collection the last one that was put off.
func Over() {
	if os.Getenv("GOGC") == "" {
		first := new([1 << 10]byte)
		runtime.AddCleanup(first, func(percent int) { debug.SetGCPercent(percent) }, usual)
	}
}
