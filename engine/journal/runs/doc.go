// Package runs is the folder of the state that keeps runs: it names them, lists them, finds the
// one to resume, and removes what is too old.
//
// Runs are numbered: run-000001 is the first. No number is given twice: each new run is above
// every folder that is there and above every one that was removed, which a marker
// (an empty file last-000123) remembers. Making the folder is what settles which of two
// processes that begin at once has a number. So neither order nor age depends on the clock
// alone: newer is what has the higher number, and a run is no older than those before
// it, whatever its manifest says. Names that an older racflow made of the time
// (20260131-235959-0a1b2c) are before all numbers.
//
// Beginning a run removes finished ones by Retention, the lowest number first, and says
// which. A run stays, until it is resumed or removed by name, if it owes something (see
// journal.Totals.Owes): it was cut off or interrupted, items were left, answers lack a voter,
// or items failed that models were asked about. So do runs that a process is at work on, and
// the newest finished one.
//
// The package does not know what a run answered.
package runs
