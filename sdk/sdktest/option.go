package sdktest

import (
	"fmt"
	"testing"

	"github.com/racflow/racflow/sdk/conformance"
)

// Option tells Stage what to take into account at the stage at hand. All but
// Without are for stores.
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
		o.Restart = func(c conformance.T) { restart(restarting{t, c}) }
	}
}

// restarting is the test of the stage, whose failures are those of the check at hand.
type restarting struct {
	*testing.T
	check conformance.T
}

func (r restarting) Error(args ...any)                 { r.check.Errorf("%s", fmt.Sprint(args...)) }
func (r restarting) Errorf(format string, args ...any) { r.check.Errorf(format, args...) }
func (r restarting) Fatal(args ...any)                 { r.check.Fatalf("%s", fmt.Sprint(args...)) }
func (r restarting) Fatalf(format string, args ...any) { r.check.Fatalf(format, args...) }
func (r restarting) Fail()                             { r.check.Errorf("the restart failed") }
func (r restarting) FailNow()                          { r.check.Fatalf("the restart failed") }
