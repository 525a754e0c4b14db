// Package eval measures what the answers of a run are worth: accuracy,
// macro-averaged F1, a table per label, agreement, rate and latency; how far their
// confidence can be taken at its word, and how many errors the flag rule catches; what
// each voter reaches by itself, and what it adds to the election; and what the lists of
// a run are worth, stage by stage, where the input says which passages should be found.
//
// An item whose expected label the knowledge does not have is out of scope: to
// leave it without an answer is right, and nothing else is.
//
// Of the wrong answers it says which pairs of labels are confused, and which were given
// with the most confidence, with the neighbours that speak for them.
//
// Any other item that failed or got no answer counts as wrong: leaving items
// out would flatter a pipeline that gives up on the hard ones. Items without an
// expected label, or without gold passages, are counted but not scored.
//
// Accuracies and differences of accuracies have intervals of 95 %, by interval.go.
// They say what chance does to figures of so few items; they do not allow for choosing
// the best of many on the same items.
//
// Variants say with which arguments a pipeline is measured in turn: all combinations of
// some values, or the pipeline without one of its parts. Package engine runs them, and
// holds the elections without a voter with package tune.
package eval
