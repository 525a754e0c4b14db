// Package cache stores results on disk, by the hash of their inputs, so that they are computed only
// once. Cache stores responses of services by request: the same request, in this run or a later
// one, gets the same response and costs nothing. Vectors stores vectors of passages by embedder and
// text: a build of knowledge embeds only texts that no build has embedded.
//
// A folder holds append-only files of records. Each process writes to a file of its own, under a
// lock. It reuses a file that no process writes, so that there are no more files than concurrent
// processes. Each process reads all files and keeps their index in memory. After a miss it checks
// for new records of other processes, at most once a second.
//
// If several processes Add to a key, the first wins. No lock covers all files: if two processes add
// before either can see the other's record, the later record wins.
//
// Once Put or Add has returned, the operating system has the record, and it survives the end of
// every process. Records are not synced one by one, so a power failure may lose the last seconds.
//
// Records carry checksums. Readers ignore an incomplete record at the end of a file: it was cut off
// or is being written. Any other mismatch is damage: it is logged, and the rest of the file is
// skipped. Services are asked again for lost responses.
//
// Vectors have a folder for each embedder. The folder's name is a hash of everything that the
// vectors depend on. A file is full at a thirtieth of the limit. Its modification time says when a
// build last used it. Each build begins and ends by removing the least recently used files until
// the rest is within the limits (maintain.go). In between, a build may write up to the limit.
//
// Responses cost money, so they have no limit unless a person sets one. The oldest responses are
// then removed first.
//
// The package does not know what keys and values mean.
package cache
