// Package faulty has stages of every kind that do whatever wrong a text asks for:
// they end their process, hang, panic, answer nonsense. With them a test sees that
// a row fails alone that a stage cannot work on.
//
// A text asks for a fault with a word like "!kill", which is for every kind of
// stage, or "!sample:kill", which is for one. All else is answered in the same way
// by every process. With harmless = true no fault is made: that is the run to
// compare with.
//
// What a stage of the SDK cannot do, such as to send rows twice, is done to the reply
// on its way out; see nonsense.go. The package does not judge what becomes of a run.
package faulty
