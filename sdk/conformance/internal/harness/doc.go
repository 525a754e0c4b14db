// Package harness is the base of all parts of the conformance suite: the T that checks report to, a
// running stage, and a deadline for each check. It checks nothing itself.
package harness
