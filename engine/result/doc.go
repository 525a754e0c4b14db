// Package result is what became of an item, as programs get it and as a line of JSONL
// holds it: one type for both, so that neither says less than the other. It writes
// results as JSONL or TSV for programs, and as a table for people, which shows less.
//
// The work itself knows more of an item (see run.Result).
package result
