// Package soft is an election by the mean ballot: the voters' distributions
// over labels are averaged, and the label with the greatest share wins; that
// share is the agreement. It is soft voting, the average rule of Kuncheva,
// "Combining Pattern Classifiers" (2nd ed. 2014, section 5.2). All samples of
// a language model form one ballot, so that asking it more often does not outweigh the
// other voters; weights can do that.
//
// An accepted answer without a label is a share for none of the labels. Where it
// wins, the verdict has no answer.
//
// The mean itself is package ballot's, shared with the engine, so that margin
// and agreement in rules mean what is elected here. A tie goes to the label
// that stands first in the order of the voters in the file.
package soft
