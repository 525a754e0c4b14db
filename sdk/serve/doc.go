// Package serve runs a plugin: a stage's main function calls Plugin and is
// done. It answers the engine's requests over gRPC, each in a goroutine of its
// own and within its deadline, turns panics into failures, and ends the
// process when the engine does, however that ends.
//
// It starts no process and knows nothing of the engine; see package remote for
// the other end of the wire.
package serve
