//go:build unix

package must

import "testing"

// recorder is a test that records a failure instead of reporting it.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestLinear(t *testing.T) {
	var sum int
	linear := func(n int) {
		for i := range 1000 * n {
			sum ^= i
		}
	}
	for name, do := range map[string]func(int){"a loop": linear, "a loop in a loop": func(n int) { linear(n * n / 100) }} {
		r := &recorder{TB: t}
		if Linear(r, 100, do); r.failed != (name != "a loop") {
			t.Errorf("%s: failed is %v", name, r.failed)
		}
	}
}
