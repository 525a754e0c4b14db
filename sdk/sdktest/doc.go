// Package sdktest is the conformance suite: what every stage owes the engine,
// whatever it computes. A plugin's test calls Stage for each of its stages.
//
// The stage runs behind the real gRPC server, in memory, so that its results
// take the way they take in a pipeline. How well a stage does its work, and
// how its process behaves, are not tested here.
//
// A stage that learns (sdk.Fitter) is fitted, and then checked in a later process, as in
// a pipeline. It learns from rows with all columns, of three labels, and has to have
// written something into its state_dir. Unfitted it may fail rows, but not a batch.
//
// Chunkers and enrichers get documents in which such stages go wrong: empty ones,
// long lines, endings of every kind, marks and emoji. What one document gives may
// not depend on those beside it, unless another machine answers.
//
// # Stores
//
// A store is compared with a model that scores and sorts everything, on
// collections of a few hundred entries; on so few an approximate index has to be
// exact. The topics are search, filters, write, restart, content, scan, refuse
// and together (several readers, a writer, cancellation), each with named
// subtests that work on collections of their own. What sdk.Store and sdk.Filter
// say is what counts. BM25 is expected with k1 = 1.2 and b = 0.75, which is what
// the config has to say where they are not the default.
//
// Where an engine cannot do something, the test of its store names the subtest
// and the reason, which then show in the output:
//
//	sdktest.Stage(t, stage, config,
//		sdktest.Without("filters/infinity", "the server's expressions have no literal for it"),
//		sdktest.Restart(func(t testing.TB) { server.Kill(t); server.Start(t) }))
//
// Collections are left behind; their names are new in every run.
//
// Package modelserver below is a server for stages that ask language models or embedders.
package sdktest
