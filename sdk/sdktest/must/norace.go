//go:build !race

package must

import "testing"

// NoRace skips a test with the race detector, which is not here.
func NoRace(testing.TB) {}
