// Package flagging finds the variable in the flag rule of an election, such as x in flag =
// "confidence < var.x", so that what is not flagged is right as often as was promised
// (package promise).
//
// A promise needs rows that nothing else was chosen on. Where tune finds other values in
// the same call, the rows are split in two: Reserved ones serve the promise alone, and
// all others the other values. The split depends on the texts, so that it is the same
// in every call, and rows with the same text stay together.
//
// Note writes the promise into the file of variables, and Read reads it there, so that
// whoever measures on other rows can say whether it was kept.
//
// It reads results. The pipeline is run, and elections are held again, by package engine.
package flagging
