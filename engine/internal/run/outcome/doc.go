// Package outcome defines the outcome of an item: the answer with its votes, citations and
// candidates, or the failure. It also defines the totals of a run over all items, with the stages
// that were skipped, the reasons why items have no answer, and the answers that were refused.
//
// The package only holds and counts values. Package run produces outcomes, package journal keeps
// them, and packages output and report write them.
package outcome
