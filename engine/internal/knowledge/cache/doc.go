// Package cache stores on disk, by the hash of their inputs, results that need not be made twice:
// responses of services by their requests (Cache), so that the same request, in this run or a later
// one, gets the same response and costs nothing; and vectors of passages by embedder and text
// (Vectors), so that a build of knowledge embeds only texts that no build has embedded.
//
// A folder holds append-only files of records. Each process writes to a file of its own, under a
// lock, and reuses one that no process writes, so that there are no more files than concurrent
// processes. Each process reads all files and keeps their index in memory. After a miss it looks
// for records that other processes have appended, at most once a second.
//
// If several processes Add to a key, the first wins. There is no lock over all files: if two add
// before either can see the other's record, the later record wins.
//
// Once Put or Add has returned, the operating system has the record, and it survives the end of
// every process. Records are not synced one by one, so a power failure may lose the last seconds.
//
// Records carry checksums. An incomplete record at the end of a file was cut off or is being
// written; readers ignore it. Any other mismatch is damage: it is logged, and the rest of the file
// is skipped. Lost responses are asked for again.
//
// Vectors have a folder for each embedder, whose name is a hash of everything that its vectors
// depend on. A file ends at a thirtieth of the limit. Its modification
// time says when a build last used it; each build begins and ends by removing the least recently
// used files until the rest is within the limits (maintain.go). In between, a build may write as
// much as the limit. Responses were paid for: they have no limit unless somebody sets one, and the
// oldest go first.
//
// The package does not know what keys and values mean.
package cache
