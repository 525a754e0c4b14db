// Package folder knows a collection of the store local as files, so that it can be taken to
// another machine while others search it and write to it.
//
// A collection is a log and segments, which the log lists; plugins/internal/store/local/format.md describes
// the bytes. Segments never change. The log grows, and what stands behind its last commit is not
// there yet; so what is taken is the log up to there, which is the same bytes for as long as
// nobody commits, and the segments that this log lists.
//
// It reads no rows and opens no segment: to check those is the store's work.
package folder
