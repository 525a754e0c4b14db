// Package sdktest runs the conformance suite (package conformance) in a Go test: what every stage
// owes the engine, whatever it computes. A plugin's test calls Stage for each of its stages.
//
// The stage runs behind the real gRPC server, in memory, so that its results
// take the way they take in a pipeline. How well a stage does its work is not
// tested; how its process behaves is what `racflow plugin verify` adds to the same checks.
// A check that hangs fails after a deadline of its own, with the reason why it is there and what to do.
//
// # Stores
//
// The topics of a store are search, filters, write, restart, content, scan, refuse
// and together (several readers, a writer, cancellation), each with named
// subtests that work on collections of their own. What sdk.Store and sdk.Filter
// say is what counts.
//
// Where an engine cannot do something, the test of its store names the subtest
// and the reason, which then show in the output:
//
//	Stage(t, stage, config,
//		Without("filters/infinity", "the server's expressions have no literal for it"),
//		Restart(func(t testing.TB) { table.Kill(t); table.Start(t) }))
//
// Package modelserver below is a server for stages that ask language models or embedders.
package sdktest
