// Package ascent searches for the weights with which the most items are right, by
// coordinate ascent on a grid: one weight at a time takes the value that is best while the
// others stay, until a round over all of them gains nothing.
//
// All values of a weight are tried together, on more and more of the items; a value that
// falls behind the present one by more than chance is dropped (Maron and Moore, "Hoeffding
// races: accelerating model selection search for classification and function
// approximation", NIPS 6:59-66, 1993, with a normal bound of the paired difference in
// place of Hoeffding's). What was evaluated is remembered, so that searches on overlapping
// items share it.
//
// The work is bounded by a count of evaluations, never by a clock: the same items give the
// same weights on any machine. What an evaluation is, the caller knows.
package ascent
