// Package local is the store that needs no server: exact dense and lexical search over collections, each in a folder
// of its own.
//
// A collection is a few segments and a log; format.md describes the bytes. A segment is some rows with every index
// over them and never changes. Large segments are files that are mapped into memory and searched there. The rows of
// small commits are in the log, and in segments in memory. The time to open a collection is the time to read its log,
// however many rows the files have.
//
// Put and Delete append to the log, and Commit makes what they wrote durable and visible. Anything behind the last
// Commit counts as not written, so a process can be killed at any moment. A deleted or replaced row stays in its
// segment and is marked beside it. When the log grows large, its rows become a file. A segment is merged with the
// rows behind it when they are as many as its own, or when most of its rows were removed. A new log that lists the
// merged segment replaces the old log.
//
// One process writes a collection at a time, from its first change to its Commit. Meanwhile any number of processes
// and goroutines search without waiting: a search uses the latest snapshot at its start. A process sees the commits
// of others when it opens the collection again.
//
// This package holds the stage, transactions, and the operations on a folder of collections that need no engine:
// find, stats, check, compact and export (maintain.go). Package segment holds rows, segments, the log, and snapshots
// of segments at one commit; package search searches these snapshots.
//
// The package does not embed, fuse or approximate: a search gives the result of comparing the query with every
// vector. Package support ranks the results of the two legs.
package local
