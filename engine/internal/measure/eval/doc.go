// Package eval measures the answers of a run: accuracy, macro-averaged F1, a table per label,
// agreement, rate and latency; how reliable their confidence is, and how many errors the flag rule
// catches; what each voter reaches alone, and what it adds to the election. It also measures the
// lists of a run, stage by stage, if the input names the passages that should be found.
//
// An item whose expected label the knowledge does not have is out of scope: the only right answer
// is none.
//
// For wrong answers it reports which pairs of labels are confused, and which answers had the most
// confidence, with the neighbours that have the answer as label.
//
// Any other item that failed or got no answer counts as wrong: leaving items out would flatter a
// pipeline that gives up on the hard ones. Items without an expected label, or without gold
// passages, are counted but not scored.
//
// Accuracies and their differences have intervals of 95 %, by interval.go. They measure the effect
// of chance on figures of so few items; they do not allow for choosing the best of many on the same
// items.
//
// A curve says from figures with fewer rows in the knowledge what more would bring.
//
// Variants define with which arguments a pipeline is measured in turn: all combinations of some
// values, or the pipeline without one of its parts. Package engine runs them, and package tune
// holds the elections without a voter.
package eval
