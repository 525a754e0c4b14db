// Package flat makes an sdk.Store from a place that keeps named contents: a folder, a bucket, a
// table. An author who implements the four methods of Place gets a store that the engine can build,
// filter, search by vectors and words, scan and drop.
//
// A collection is one content. Open reads all of it into memory, and Commit writes all of it. A
// search compares the query with every entry. So results are exact, collections must fit into memory,
// and the time grows with their size. The package has no index; a store that has one implements
// sdk.Store instead.
//
// Only one process at a time should write a collection. A Commit is refused if another process has
// committed since the collection was opened. If both commit in the same moment, the later commit
// stays.
package flat
