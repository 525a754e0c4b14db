// Package conformance is the one table of what every stage owes the engine, whatever it computes
// and in whatever language it is written. A check has a name, a reason, advice for the person who
// sees it fail, and a deadline: one that hangs has failed, and the rest goes on.
//
// The table is run in two places. Package sdktest runs it in a Go test, on a stage in memory. The
// command `racflow plugin verify` runs it on the real process, and adds the checks that only a
// process can fail. Both give a Starter, and get a Result for each Check.
//
// A stage that learns (sdk.Fitter) is fitted, and then checked in a later process, as in
// a pipeline. It learns from rows with all columns, of three labels, and has to have
// written something into its state_dir. Unfitted it may fail rows, but not a batch.
//
// Chunkers and enrichers get documents in which such stages go wrong: empty ones,
// long lines, endings of every kind, marks and emoji. What one document gives may
// not depend on those beside it, unless another machine answers.
//
// A store is compared with one of package flat, which scores and sorts everything, on
// collections of a few hundred entries; on so few an approximate index has to be
// exact. BM25 is expected with k1 = 1.2 and b = 0.75, which is what
// the config has to say where they are not the default. Collections are left
// behind; their names are new in every run.
//
// A store that serves collections which another program makes is checked on such ones, too
// (AttachedChecks): its test says how they are made, since the suite has no client of the server.
//
// How well a stage does its work is not checked.
package conformance
