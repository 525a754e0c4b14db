// Package outcome defines the outcome of an item: the answer with its votes, citations and
// candidates, or the failure. It also defines the totals of a run over all items, with the stages
// that were skipped, the reasons why items have no answer, and the answers that were refused.
//
// It holds and counts values. Package run reaches an outcome, package journal keeps it, and
// packages result and report write it.
package outcome
