//go:build race

package must

import "testing"

// NoRace skips a test with the race detector: in a test that computes in one goroutine the detector
// finds nothing, and takes ten to twenty times as long.
func NoRace(t testing.TB) {
	t.Helper()
	t.Skip("with the race detector it would only take longer")
}
