// Package faulty has stages of every kind that commit any fault on request: they end their process,
// hang, panic, or return nonsense. Tests use them to check that a row which breaks its stage fails
// alone.
//
// A text requests a fault with a word: "!kill" from every kind of stage, or "!sample:kill" from one
// kind. Other texts get the same answers from every process. With harmless = true the stages commit
// no fault; tests compare with such a run.
//
// nonsense.go alters replies on their way out, for faults that a stage of the SDK cannot commit, such
// as two errors for one row. The package does not judge the result of a run.
package faulty
