// Package loglevel lets a person choose what of the log is shown, for all stages and for each by
// itself: Parse reads what RACFLOW_LOG says, Levels.Handler shows only that.
//
// It writes no log itself, and does not know which stages a file has.
package loglevel
