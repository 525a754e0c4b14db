// Package flat makes a whole sdk.Store of a place that keeps named contents: a folder, a bucket,
// a table. Whoever implements the four methods of Place has a store that the engine can build,
// filter, search by vectors and words, scan and drop.
//
// A collection is one content. Open reads all of it into memory, Commit writes all of it, and a
// search compares the query with every entry: exact results, for collections that fit into memory,
// in time that grows with them. It is no index. A store that has one of its own implements
// sdk.Store instead.
//
// One process at a time should write a collection. A Commit is refused where another process has
// committed since the collection was opened, unless both commit in the same moment: then the later
// one stays.
package flat
