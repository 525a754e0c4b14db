// Package table is one collection of a Milvus server, its table: its schema and
// who made it, its indexes, its place in the server's memory, and the calls that
// read and write its rows. It hides where servers differ. What rows mean, which of
// them count and when they may go, others know (package milvus).
//
// Rows reads and searches the rows of any collection, also of those that other
// programs make (package entries).
package table
