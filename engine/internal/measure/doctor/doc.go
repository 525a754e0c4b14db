// Package doctor checks the knowledge and the input of a pipeline for errors, before they make
// answers worse, or figures too good.
//
// Look reads rows and returns findings, the most severe first. Each finding has a count, a few rows
// and advice. Checks of labels and copies need only the rows. Checks of a knowledge's votes
// (confident.go) and of its embedder need stages, which the caller starts. The quick look before
// each run keeps a hash of each text instead of the text, and reports only certain findings.
//
// Doubts are the findings by row, for a person who corrects rows. A Proposal is a corrected copy of the
// rows: it removes copies, gives each label one spelling, and replaces labels where votes are nearly
// certain. In a Proposal, each row that was changed, or that a person should look at, has the reason. The
// original is never changed.
package doctor
