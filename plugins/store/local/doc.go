// Package local is the store that needs no server: exact dense and lexical
// search over collections that are kept in a folder each.
//
// A collection is a few segments and a log; format.md describes the bytes. A
// segment is some rows with every index over them: a hash table of ids, vectors
// and a coarser copy of them, inverted lists of words, of labels and of metadata.
// It never changes. Large segments are files, mapped into memory and ready to be
// searched as they are; the rows of small commits are in the log, and in
// segments in memory. To open a collection takes as long as it takes to read the
// log, however many rows the files have.
//
// Put and Delete append to the log, Commit makes what they wrote durable and
// visible, and whatever follows the last Commit does not exist: a process can be
// killed at any moment. A deleted or replaced row stays in its segment and is
// marked beside it. When the log grows large its rows become a file, and when
// segments become many, or what is removed from one outweighs the rest, they are
// merged into new ones; a new log that lists them takes the place of the old one.
//
// One process writes a collection at a time, from its first change to its
// Commit. Any number of processes and goroutines search meanwhile and wait for
// nobody: a search works on the snapshot that was the latest when it began, and
// a process sees what others commit when it opens the collection again.
//
// The package does not embed, fuse or approximate: a search has the result of
// comparing the query with every vector, though most are ruled out by a coarser
// copy, and the ranking of the two sides is left to package fuse. A filter costs
// about what it selects.
//
// Collections, Stats, Check, Compact and Export look after a folder of
// collections without the engine.
package local
