// Package expect tests the expect blocks of a pipeline, on its input or on one of their own.
//
// Package rule (Expectation) defines what a rule can say: figures, and comparisons of figures. This
// package evaluates the rules. It measures all figures of a pipeline, an input and some values of
// variables in one evaluation. Some figures have a 95 % interval. A comparison that fails reports what
// it would need. A figure that cannot be measured, such as the recall of a label that no item has, makes
// every rule that names it fail.
//
// Shares of items have Wilson's interval (package eval). recall_at, ndcg and mrr are means of values
// between 0 and 1. They have the same interval, which for them is too wide rather than too narrow. f1
// has a bootstrap interval. Samples of the same number of items are drawn with replacement and a fixed
// seed; the interval is the middle 95 % of their f1 (Efron, "Bootstrap methods: another look at the
// jackknife", The Annals of Statistics 7:1-26, 1979).
//
// A baseline is an earlier run over the same items. The pipeline is worse than its baseline if it lost
// more items than it gained, and chance alone is an unlikely cause: it makes such a difference in fewer
// than 5 of 100 cases. This is McNemar's exact test, as in racflow runs diff. A failed item counts as
// wrong in both runs. An out-of-scope item without an answer counts as right.
//
// The package prints nothing, and keeps no run. It does not measure time: machines differ.
package expect
