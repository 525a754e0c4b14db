// Package local is the store that needs no server: exact dense and lexical
// search in memory, over collections that are kept in one file each.
//
// A collection is a folder with an append-only log; format.md describes the
// bytes. Put and Delete append to the log, Commit makes what they wrote durable
// and visible, and whatever follows the last Commit does not exist: a process
// can be killed at any moment. One process writes a collection at a time, from
// its first change to its Commit; any number of processes search meanwhile, each
// in the state that it found when it opened the collection.
//
// Everything is in memory as well: vectors in blocks that a search passes over
// from end to end, words in inverted lists. Deleted rows leave holes in both,
// and when the holes outweigh the rest, log and memory are rewritten.
//
// The package does not embed, fuse or approximate: a search has the result of
// comparing the query with every vector, though most are ruled out by a coarser
// copy, and the ranking of the two sides is left to package fuse.
package local
