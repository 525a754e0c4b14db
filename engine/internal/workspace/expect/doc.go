// Package expect tests the expect blocks of a pipeline, on its input or on one of their own.
//
// Package rule (Expectation) defines what a rule can say: figures and comparisons of them. This package
// measures the figures, all of a pipeline, an input and some values of variables in one evaluation, and
// evaluates the rules. A figure has its interval of 95 % if it has one, and a comparison that fails says
// what it would need. A figure that cannot be measured, such as the recall of a label that no item has,
// makes every rule that names it fail.
//
// Shares of items have Wilson's interval (package eval). recall_at, ndcg and mrr are means of values
// between 0 and 1 and have the same one, which is then too wide rather than too narrow. f1 has that of
// the bootstrap: the middle 95 % of the f1 of as many items drawn from these with replacement (Efron,
// "Bootstrap methods: another look at the jackknife", The Annals of Statistics 7:1-26, 1979), with a
// fixed seed.
//
// A baseline is an earlier run over the same items. The pipeline is worse than its baseline if it lost
// more items than it gained, and chance makes a difference as large in fewer than 5 of 100 cases:
// McNemar's exact test, as in racflow runs diff. A failed item is wrong on either side; an out-of-scope
// item that a run left without an answer is right.
//
// The package prints nothing, and keeps no run. It does not measure time: machines differ.
package expect
