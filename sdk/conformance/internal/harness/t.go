package harness

import "context"

// T is what a check reports to: the part of testing.T that the suite needs. testing.TB cannot be
// implemented outside package testing.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any) // the check has failed, and continues
	Fatalf(format string, args ...any) // the check has failed, and ends here
	Skipf(format string, args ...any)  // the check does not apply, and ends here
	Failed() bool
	Context() context.Context // ends with the check
	TempDir() string          // a new folder that is removed after the check
	Cleanup(func())
	Run(name string, check func(T)) bool // reports whether it passed
}
