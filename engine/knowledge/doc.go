// Package knowledge keeps a store in step with its source, and searches it.
//
// Open compares the rows of the source with what the store holds, by id and
// content hash, and redoes only what differs: an unchanged file is only read
// for its digest, a changed row is embedded again, a removed row disappears.
// All changes of one Open become visible in one commit.
//
// A collection belongs to one fingerprint (source file, embedder, analyzer,
// layout), which is part of its name. Another embedder therefore builds another
// generation and leaves the first one as it is: a build that fails or is killed
// takes nothing away. Once it is complete, a build removes what it replaces of
// the same file, source and embedder; ListGenerations finds the others.
//
// Beside each collection stands one of label centroids, so that every store
// can serve the nearest centroids without them touching search or BM25
// statistics.
//
// The package works on the interfaces of the sdk and starts no process itself.
package knowledge
