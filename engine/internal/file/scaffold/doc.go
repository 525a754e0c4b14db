// Package scaffold writes a pipeline file for data without a description. It examines files of rows and documents,
// reports what it saw, guesses which columns hold what, and writes a file that works immediately.
//
// It fills the data's paths, columns and language into a template with the usual settings (folder short). The
// template has the blocks of one of the pipeline files that come with racflow (package pipelines): intent.hcl for
// labelled rows, contextual.hcl for other rows and documents. The knowledge omits a tenth of the labelled rows, or
// a fifth of fewer than 500, to test the pipeline on.
//
// Exports of other programs are not tables (exports.go has the known forms). Their rows are written once, beside
// the pipeline file, as JSONL, so that a run reads only rows. Rows.Unsure is a guess that may well be wrong, with
// what to type to correct it. If rows have several labels, answers are sets.
//
// The package asks no questions and starts no stage. The caller decides whether to replace a file.
package scaffold
