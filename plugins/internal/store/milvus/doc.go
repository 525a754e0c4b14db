// Package milvus is the store for knowledge that outgrows one machine: collections
// of a Milvus server, of Milvus Lite or of Zilliz Cloud. A build has the answers of store/local.
//
// Every entry is a row, whose key is a hash of its id. Its words, as racflow's analyzer finds them, stand in a field
// that the server divides at blanks: Milvus' BM25 function then gives the scores of store/local (that of Milvus Lite 3
// counts otherwise). A server
// without one (Milvus before 2.5) takes knowledge without an analyzer.
//
// Milvus has no transactions. The engine makes a collection for each full build, and says in the note of a commit when it
// is whole; until then others are searched. The note is the pointer that an alias would be: it is there on every server,
// Milvus Lite has no aliases, and the engine finds generations by their notes anyway. Later changes are made in place:
// readers may see one half done for the seconds that it takes. It has one writer at a time, who claims the collection
// for as long. One that is cut off is noticed, and the engine then compares every entry.
//
// From the bottom up:
//
//	table      collections of a server: the connection, retries, schema, indexes, rows, and
//	           the expressions that select rows
//	entries    rows as entries: searched, got and scanned, in collections of racflow's own and in those
//	           that another program makes
//	record     the books: what is kept of a collection beside its entries
//	claim      which process writes
//	write      changes, and the commit
//
// This package puts them together as a stage. It does not embed. The SDK fuses the legs: the scores of a server's own
// hybrid search differ between engines.
package milvus
