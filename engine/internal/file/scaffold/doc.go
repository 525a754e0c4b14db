// Package scaffold writes a pipeline file for data without a description: it looks at
// files of rows and at documents, says what it saw, guesses which columns hold what, and
// writes a file that works at once.
//
// It fills the data's paths, columns and language into a template with the usual settings (folder short), which has
// the blocks of one of the pipeline files that come with racflow (package pipelines). For labelled rows that is
// intent.hcl, for other rows and documents contextual.hcl. The knowledge leaves out a tenth of the
// labelled rows, or a fifth of fewer than 500, to try the pipeline on.
//
// Exports of other programs are not tables (exports.go has the known forms): their rows are written beside the
// pipeline file as JSONL, once, so that a run reads only rows. Rows.Unsure is a guess that may
// well be wrong, with what to type; rows with several labels make answers that are sets.
//
// The package asks no questions and starts no stage. The caller decides whether to replace a file.
package scaffold
