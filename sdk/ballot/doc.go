// Package ballot holds the arithmetic of voting that the engine and the voting stages
// share: a voter's ballot, the mean of all ballots, and what margin and agreement mean
// in rules. NewElection is an elector for whoever has a function that elects.
//
// A ballot is a list of labels with weights that sum to 1, best first. A
// statistical voter hands in one sample that is a ballot already; a language
// model asked n times hands in n samples, which together form one ballot. The
// mean of the ballots is the soft vote of ensemble learning (Kuncheva,
// "Combining Pattern Classifiers", 2nd ed. 2014, section 5.2: the average rule).
//
// The label of an accepted answer may be empty: that none of the labels fits is
// a vote like any other, in every ballot, and may win.
//
// It does not decide which answers are acceptable: the engine marks those
// before anything is counted.
package ballot
