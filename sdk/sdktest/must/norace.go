//go:build !race

package must

import "testing"

// NoRace skips a test with the race detector, which is off here.
func NoRace(testing.TB) {}
