// Package milvus is the store for knowledge that outgrows one machine. It uses collections of a Milvus server, of
// Milvus Lite or of Zilliz Cloud. A build in it gives the same answers as one in store/local.
//
// Every entry is a row whose key is a hash of the entry's id. One field holds the words that racflow's analyzer
// finds, and the server splits that field at blanks. Milvus' BM25 function then gives the scores of store/local; the
// function of Milvus Lite 3 counts otherwise. A server without the function (Milvus before 2.5) takes knowledge
// without an analyzer.
//
// Milvus has no transactions. The engine makes a collection for each full build. The note of a commit says when the
// collection is complete; until then searches use another collection. The note serves as the pointer that an alias
// would be. Every server has notes, Milvus Lite has no aliases, and the engine finds generations by their notes
// anyway. Later changes are made in place: readers may see a half-done change for the seconds that it takes. A
// collection has one writer at a time, who claims it for the duration of the change. The engine notices an
// interrupted change and then compares every entry.
//
// From the bottom up:
//
//	table      collections of a server: the connection, retries, schema, indexes, rows, and
//	           the expressions that select rows
//	entries    rows as entries: search, get and scan, in racflow's own collections and in
//	           collections of other programs
//	record     what is stored about a collection beside its entries
//	claim      which process writes
//	write      changes, and the commit
//
// This package combines them into a stage. It does not embed. The SDK fuses the legs, because the scores of a
// server's own hybrid search differ between engines.
package milvus
