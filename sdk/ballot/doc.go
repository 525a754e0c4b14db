// Package ballot holds the arithmetic of voting that the engine and the voting stages share: a
// voter's ballot, the mean of all ballots, and the margin and agreement of rules. NewElection makes
// an elector from a function that elects.
//
// A ballot is a list of labels with weights that sum to 1, best first. The sample of a statistical
// voter is already a ballot. A language model that is asked n times returns n samples, which together
// form one ballot. The mean of the ballots is the soft vote of ensemble learning (Kuncheva,
// "Combining Pattern Classifiers", 2nd ed. 2014, section 5.2: the average rule).
//
// The label of an accepted answer may be empty, for "none of the labels fits". That is a vote like
// any other, in every ballot, and may win.
//
// The package does not decide which answers are acceptable: the engine marks them before anything is
// counted.
package ballot
