// Package report shows what a run is doing and what came of it: results as
// JSONL or TSV for programs, as a table for people, progress while it runs,
// and evaluations. TSV has one line per result; see Escape for texts that would
// take several.
//
// Results go where data goes (standard output or a file), everything else to
// standard error; which is which is the caller's choice.
package report
