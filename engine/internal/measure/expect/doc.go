// Package expect says whether what a pipeline file expects holds: the expect blocks of a
// pipeline, measured on its input or on one of their own.
//
// What a rule can say is in package rule (Expectation): figures and what they are compared with.
// This package measures the figures, all of a pipeline, an input and some values of variables by one
// evaluation, and asks the rules. A figure comes with its interval of 95 % where it has one, and a
// comparison that does not hold with what would be needed. A figure that cannot be measured,
// such as the recall of a label that no item has, lets every rule that names it fail.
//
// Shares of items have Wilson's interval (package eval). recall_at, ndcg and mrr are means of
// values between 0 and 1 and have the same one, which is then too wide rather than too narrow. f1 has
// that of the bootstrap: the middle 95 % of the f1 of as many items drawn from these with
// replacement (Efron, "Bootstrap methods: another look at the jackknife", The Annals of
// Statistics 7:1-26, 1979), with a fixed seed.
//
// A baseline is an earlier run over the same items. The pipeline is worse than it where more items
// were lost than gained, and a difference as large would come by chance in fewer than 5 of 100
// cases: McNemar's exact test, as of racflow runs diff. An item that failed is wrong on either side, and
// one that a run left out of scope without an answer is right.
//
// It prints nothing, and keeps no run. How time passes is not measured: machines differ.
package expect
