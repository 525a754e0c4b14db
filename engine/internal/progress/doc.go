// Package progress has what work reports while it is under way: how far it is, and what it waits
// for. All rooms may report, so that the package imports none of them.
//
// It does not show the reports: that is up to the caller of the engine.
package progress
