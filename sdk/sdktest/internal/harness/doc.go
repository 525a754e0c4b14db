// Package harness is what all parts of the conformance suite stand on: a stage behind a
// gRPC server in memory, and subtests that can be left out. It checks nothing itself.
package harness
