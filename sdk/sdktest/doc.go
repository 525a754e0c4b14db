// Package sdktest runs the conformance suite (package conformance) in a Go test: what the engine
// expects of every stage, whatever it computes. A plugin's test calls Stage for each of its stages.
//
// The stage runs behind the real gRPC server, in memory, so that its results travel as they do in a
// pipeline. The suite does not test how well a stage does its work. `racflow plugin verify` runs the
// same checks, and also tests how the stage's process behaves. A check that hangs fails after a
// deadline of its own; its message gives the reason for the check, and what to do.
//
// # Stores
//
// The topics of a store are search, filters, write, restart, content, scan, refuse and together
// (several readers, a writer, cancellation). Each topic has named subtests that work on collections
// of their own. The documentation of sdk.Store and sdk.Filter decides what is right.
//
// If a server cannot do something, the test of its store names the subtest and the reason, and the
// output shows them:
//
//	Stage(t, stage, config,
//		Without("filters/infinity", "the server's expressions have no literal for it"),
//		Restart(func(t testing.TB) { table.Kill(t); table.Start(t) }))
//
// Package modelserver below is a server for stages that ask language models or embedders.
package sdktest
