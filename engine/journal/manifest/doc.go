// Package manifest says what a run was: the parts of the pipeline, input, knowledge and
// plugins by their fingerprints, so that it can be told whether another run would answer in
// the same way; and what a resumed run gets again: values that stages chose when they
// started, prices, and the command that began it.
//
// A manifest is a file of a run's folder, written once, before the first item, and sealed
// (package sealed). One that was changed since is refused: nobody knows what was run.
//
// Secrets are not in it.
package manifest
