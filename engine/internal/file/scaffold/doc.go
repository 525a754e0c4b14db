// Package scaffold writes a pipeline file for data that nobody has described: it looks at
// files of rows and at documents, says what it saw, guesses which columns hold what, and
// makes a file of it that works at once.
//
// What it writes is a template with the data's paths, columns and language put in: a short one
// (folder short) with what is usually set, or one of the pipeline files that racflow comes with
// (package pipelines). Both have blocks of the same names, and give the same answers. Labelled rows become
// intent.hcl, other rows and documents contextual.hcl. A tenth of labelled rows, a fifth of fewer than 500, is held
// out of the knowledge, and is what the pipeline is tried on.
//
// What other programs export is no table (exports.go has the known forms): its rows are written beside the
// pipeline file as JSONL, once, so that a run reads rows and nothing else. What is guessed and may well be
// wrong stands in Rows.Unsure, with what to type; rows with several labels are refused.
//
// It asks nobody, and starts no stage. Whether a file may be replaced is the caller's choice.
package scaffold
