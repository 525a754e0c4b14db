// Package eval measures the answers of a run: accuracy, macro-averaged F1, a table per label,
// agreement, rate and latency. It also measures how reliable their confidence is, how many errors
// the flag rule catches, how accurate each voter is alone, and what each voter adds to the
// election. If the input names the passages that should be found, package eval measures the lists
// of candidates, stage by stage.
//
// If the knowledge does not have an item's expected label, the item is out of scope: the only right
// answer is none.
//
// The package reports which pairs of labels are confused. It also lists the wrong answers with the
// most confidence, each with the neighbours that have this answer as label.
//
// Any other item that failed or got no answer counts as wrong: leaving items out would flatter a
// pipeline that gives up on the hard ones. Items without an expected label, or without gold
// passages, are counted but not scored.
//
// Accuracies and their differences have intervals of 95 %, by interval.go. An interval shows how
// much a figure may be due to chance because the items are few. It does not correct for choosing
// the best of many variants on the same items.
//
// A curve extrapolates from figures with fewer rows in the knowledge how much more rows would help.
//
// A Variant is a pipeline with some arguments changed: one combination of the values to try, or the
// pipeline without one of its parts. Package workspace runs the variants. Package tune repeats the
// elections without a voter.
package eval
