// Package snapshot is the rows of a collection at one commit: its segments, the removed
// rows of each, and how changes make the next snapshot. It says which segments are due to
// be merged. It knows no log, and searching is the work of the packages above it.
package snapshot
