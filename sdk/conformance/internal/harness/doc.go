// Package harness is what all parts of the conformance suite stand on: what checks
// report to, a stage that runs, and a deadline for each check. It checks nothing itself.
package harness
