// Package local is the store that needs no server: exact dense and lexical
// search over collections that are kept in a folder each.
//
// A collection is a few segments and a log; format.md describes the bytes. A
// segment is some rows with every index over them and never changes. Large segments
// are files, mapped into memory and searched as they are; the rows of small commits
// are in the log, and in segments in memory. Opening a collection takes as long as
// reading the log, however many rows the files have.
//
// Put and Delete append to the log, Commit makes what they wrote durable and
// visible, and whatever follows the last Commit does not exist: a process can be
// killed at any moment. A deleted or replaced row stays in its segment and is
// marked beside it. When the log grows large its rows become a file. When the rows
// behind a segment are as many as its own, or most of its rows were removed, it is
// merged with them into a new one; a new log that lists it takes the place of the old one.
//
// One process writes a collection at a time, from its first change to its
// Commit. Any number of processes and goroutines search meanwhile and wait for
// nobody: a search works on the snapshot that was the latest when it began. A
// process sees what others commit when it opens the collection again.
//
// This package holds the stage, transactions, and what people do with a folder of
// collections without the engine: Find, Stats, Check, Compact and Export. Package segment
// has rows, segments, the log, and segments at one commit; package search searches these.
//
// It does not embed, fuse or approximate: a search has the result of comparing the
// query with every vector. The ranking of the two legs is left to package support.
package local
