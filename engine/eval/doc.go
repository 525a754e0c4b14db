// Package eval measures what the answers of a run are worth: accuracy,
// macro-averaged F1, a table per label, each voter by itself, agreement, rate
// and latency; and what its lists are worth, stage by stage, where the input
// says which passages should be found.
//
// An item whose expected label the knowledge does not have is out of scope: to
// leave it without an answer is right, and nothing else is.
//
// Variants say with which arguments a pipeline is measured in turn: all combinations of
// some values, or the pipeline without one of its parts. Package engine runs them.
//
// Any other item that failed or got no answer counts as wrong: leaving items
// out would flatter a pipeline that gives up on the hard ones. Items without an
// expected label, or without gold passages, are counted but not scored.
package eval
