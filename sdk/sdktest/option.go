package sdktest

import (
	"fmt"
	"testing"

	"github.com/racflow/racflow/sdk/conformance"
)

// Option tells Stage what to take into account at the stage at hand. All but
// Without and Parallel are for stores.
type Option func(*testing.T, *conformance.Options)

// Without leaves out a subtest, and those below it, that a stage cannot pass.
// The path is that of the subtest's name below Stage, as in "filters/prefix".
// It is shown as skipped, with the reason; a path that does not exist fails.
func Without(path, reason string) Option {
	return func(_ *testing.T, o *conformance.Options) { o.Without[path] = reason }
}

// DenseOnly tests a store, which lacks a lexical leg, on collections without
// one. Subtests that need it are skipped with the reason.
func DenseOnly(reason string) Option {
	return func(_ *testing.T, o *conformance.Options) { o.DenseOnly = reason }
}

// Parallel runs the checks beside each other, for a stage that waits for a server more than it computes.
func Parallel() Option {
	return func(_ *testing.T, o *conformance.Options) { o.Parallel = true }
}

// Tolerance sets how far a score may be from the reference, relative to the
// larger of 1 and the score. The default is 1e-5, which float32 keeps.
func Tolerance(t float64) Option {
	return func(_ *testing.T, o *conformance.Options) { o.Tolerance = t }
}

// Restart sets what happens between closing and opening a stage in the subtests
// of "restart", such as killing the server and starting it again. The stage is
// opened with the same state folder in any case.
func Restart(restart func(testing.TB)) Option {
	return func(t *testing.T, o *conformance.Options) {
		o.Restart = func(c conformance.T) { restart(hook{t, c}) }
	}
}

// hook is the test of the stage as a hook of it sees it: its failures are those of the check at hand.
type hook struct {
	*testing.T
	check conformance.T
}

func (h hook) Error(args ...any)                 { h.check.Errorf("%s", fmt.Sprint(args...)) }
func (h hook) Errorf(format string, args ...any) { h.check.Errorf(format, args...) }
func (h hook) Fatal(args ...any)                 { h.check.Fatalf("%s", fmt.Sprint(args...)) }
func (h hook) Fatalf(format string, args ...any) { h.check.Fatalf(format, args...) }
func (h hook) Fail()                             { h.check.Errorf("a hook of the test failed") }
func (h hook) FailNow()                          { h.check.Fatalf("a hook of the test failed") }
