//go:build unix

package must

import "testing"

// told is a test that keeps to itself that it failed.
type told struct {
	testing.TB
	failed bool
}

func (f *told) Helper()               {}
func (f *told) Errorf(string, ...any) { f.failed = true }

func TestLinear(t *testing.T) {
	var sum int
	linear := func(n int) {
		for i := range 1000 * n {
			sum ^= i
		}
	}
	for name, do := range map[string]func(int){"a loop": linear, "a loop in a loop": func(n int) { linear(n * n / 100) }} {
		f := &told{TB: t}
		if Linear(f, 100, do); f.failed != (name != "a loop") {
			t.Errorf("%s: failed is %v", name, f.failed)
		}
	}
}
