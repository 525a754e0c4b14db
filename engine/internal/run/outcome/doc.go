// Package outcome has what becomes of an item and of a run: the answer with its
// votes, citations and candidates, or the failure; and the totals over all items, with
// the stages that were skipped, the reasons why items have no answer, and the answers
// that do not count.
//
// It holds values and counts them. How an outcome is reached is in engine/internal/run, how it
// is kept in engine/internal/run/journal, and how it is written in engine/internal/run/result and
// engine/internal/show/report.
package outcome
