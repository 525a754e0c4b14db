// Package weighted is a majority election in which each voter counts by what
// it was worth on a file with known labels: `racflow tune` measures that and
// writes the accuracies down.
//
// Each voter has one vote. It is for the best accepted answer of its sample;
// the vote of a model that was asked n times is spread evenly over the best
// accepted answers of those samples that have one, because what the same model
// says n times is no more independent than what it says once. The vote weighs
// the log-odds of the voter's accuracy, see ballot.Worth, where the number of
// labels is that of the knowledge, or 2 where the pipeline has none. A voter
// without a measured accuracy is taken to be half way between chance and
// certainty.
//
// The most weight wins; a tie goes to the answer that was voted for first, in
// the order of the voters in the file. The agreement is the winner's share of
// the weight. An accepted answer without a label is a vote for none of the
// labels. Where no voter that has a say is better than chance, nobody is
// elected.
//
// It does not measure anything, and it does not look at the weights inside a
// sample; elect/soft does.
package weighted
