// Package progress defines the reports of work in progress: how far the work is, and what it waits
// for. Every package may report, so this package imports none of them.
//
// It does not show the reports: the caller of the engine decides about that.
package progress
