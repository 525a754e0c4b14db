// Package result is what became of an item, as programs get it and as a line of JSONL
// holds it: one type for both, so that neither says less than the other. The work
// itself knows more of an item (see run.Result); terminals and TSV show less (see
// package report).
package result
