// Package conformance is the one table of what the engine expects of every stage, whatever the stage
// computes, in whatever language. A check has a name, a reason, advice for the person who sees it
// fail, and a deadline. A check that hangs has failed; the others still run.
//
// The table runs in two places. Package sdktest runs it in a Go test, on a stage in memory. The
// command `racflow plugin verify` runs it on the real process, and adds checks that only a process
// can fail. Both pass a Starter, and get a Result for each Check.
//
// A stage that learns (sdk.Fitter) is fitted, and then checked in a later process, as in a pipeline.
// It learns from rows with all columns, of three labels, and must write something into its state_dir.
// Without fitting, it may fail rows, but not a batch.
//
// Chunkers and enrichers get documents that often break such stages: empty ones, long lines, line
// endings of every kind, marks and emoji. The results for a document must not depend on its
// neighbours, unless another machine computes them.
//
// A store is compared with a store of package flat, which scores and sorts all entries. The
// collections have a few hundred entries; an approximate index has to be exact on so few. The suite
// expects BM25 with k1 = 1.2 and b = 0.75; if these are not the store's defaults, the config must set
// them. The suite leaves its collections behind; their names are new in every run.
//
// A store that serves collections of another program is also checked on such collections
// (AttachedChecks). The store's test makes these, since the suite has no client of the server.
//
// The suite does not check how well a stage does its work.
package conformance
