// Package server talks to a Milvus server: it connects with user, token and TLS,
// gives every call a deadline, makes it again while the server is away or
// overloaded, and makes errors of what the SDK passes over in silence. It does not
// know what is kept on the server.
//
// No code of the store asks for the version of a server. What engines differ in is
// either avoided on all of them or found by asking. "Lite 2" is Milvus Lite 2.5, "Lite
// 3" Milvus Lite 3.2, "2.3" Milvus 2.3:
//
//	engine    what is different                     found, and what is done
//	Lite 2    an error is only in Status.Code       every reply is checked (checkStatus)
//	Lite 2    errors are words, not codes           a table of them (refusal.go)
//	Lite 2    no databases, and ignores their name  ListDatabases at connect; the argument is refused
//	Lite 2    no aliases, partitions                the call is Unimplemented (package attached)
//	Lite 2,   a result without rows is an error     its words (IsEmpty)
//	2.3       of the SDK
//	Lite 2    no HNSW                               made with the first index that it takes (package table)
//	Lite 3    an index cannot be made twice         asked for before (package table)
//	Lite 3,   a restart unloads collections         the refusal; loaded, and asked again (package table)
//	2.3
//	Lite 2    lists collections without ids         read from the raw service (package table)
//	Lite 2    keeps the description of a            written as both (package table)
//	          collection, others its properties
//	Lite 2    counts a row twice that was upserted  a count that is too high is checked (package transaction)
//	Lite 2    reads OR, not, in [], tabs and line   never sent (package expression)
//	          feeds in another way
//	Lite 2,   take NaN and text that is too long    checked before (package row)
//	Lite 3
package server
