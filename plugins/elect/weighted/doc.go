// Package weighted is a majority election that weights each voter by its accuracy on
// a file with known labels, which `racflow tune` measures and writes into a file of
// variables.
//
// Each voter has one vote, for the best accepted answer of its sample. The vote of a
// model that was asked n times is divided evenly among the best accepted answers of its
// samples that have one: n answers of the same model are not independent. A vote's
// weight is the log-odds of the voter's accuracy, see ballot.Worth, with the number of
// labels of the knowledge, or 2 where the pipeline has none. A voter without a measured
// accuracy is assumed to be half way between chance and certainty.
//
// The greatest weight wins; a tie goes to the answer that was voted for first, in the
// order of the voters in the file. The agreement is the winner's share of the weight.
// An accepted answer without a label is a vote for none of the labels. Where no voter
// with an acceptable answer is better than chance, the verdict has no answer.
//
// It does not measure anything, and it does not look at the weights inside a
// sample; elect/soft does.
package weighted
