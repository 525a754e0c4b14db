// Package table is one collection of a Milvus server: its schema and who made it, its indexes, its load state in the
// server's memory, and the calls that read and write its rows. It hides differences between servers. Package milvus
// knows what rows mean, which rows count and when they may be deleted.
//
// Rows reads and searches the rows of any collection, also of collections that other programs make (package entries).
package table
