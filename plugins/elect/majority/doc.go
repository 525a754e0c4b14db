// Package majority is the election of RAGE (retrieval-augmented generation
// and election), Algorithm 1 of the paper: each sample casts one vote, for its
// best accepted answer, and the answer with the most votes wins.
//
// A tie goes to the answer that was voted for first, in the order of the voters in the
// file and of their samples. So a statistical voter that stands above the language
// models wins ties, as the paper's kNN vote does; and since it proposes only labels of
// the knowledge, there is always an acceptable answer. The agreement is the winner's
// share of the votes, weighted by their voters.
//
// An accepted answer without a label is a vote for none of the labels. Where
// it wins, the verdict has no answer.
//
// It does not look at the weights inside a sample; elect/soft does.
package majority
