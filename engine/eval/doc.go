// Package eval measures what the answers of a run are worth: accuracy,
// macro-averaged F1, a table per label, each voter by itself, agreement, rate
// and latency.
//
// An item that failed or got no answer counts as wrong: leaving items out
// would flatter a pipeline that gives up on the hard ones. Items without an
// expected label are counted but not scored.
package eval
