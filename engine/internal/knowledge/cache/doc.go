// Package cache stores on disk what need not be made twice, by the hash of what it is made
// from: responses of services by their requests (Cache), so that the same request, in this run
// or a later one, gets the same response and costs nothing; and vectors of passages by embedder
// and text (Vectors), so that a build of knowledge embeds only what no build has embedded.
//
// A folder holds files of records, which are only ever appended to. Each
// process writes to a file of its own, under a lock, and reuses one that no process
// writes, so that there are no more files than concurrent processes. All files are read:
// their index is in memory, and a miss looks for what other processes appended, at most once
// a second.
//
// Of several processes that Add to a key, the first wins. There is no lock over all files: if
// two add before either can see the other's record, the later record wins.
//
// Once Put or Add has returned, the record is with the operating system and survives the end
// of every process. Records are not synced one by one, so a power failure may lose the last
// seconds.
//
// Records carry checksums. An incomplete record at the end of a file was cut
// off or is being written, and is ignored. Anything else that does not fit is damage: it is
// logged, and the rest of the file is skipped. Lost responses are asked for again.
//
// Vectors have a folder for each embedder, whose name is a hash of all that its vectors depend
// on. Those that were embedded together are one record, a group (cache.go), so that a file can
// be indexed without being read. At a thirtieth of the limit another file is begun. The time of a
// file says when a build last used it; a build begins and ends with the removal of the files
// that were used least recently, until the rest is within the limits (maintain.go). A build may
// write as much as the limit holds before that. Responses were paid for: they have no limit
// unless somebody sets one, and those that came first go first.
//
// The package does not know what keys and values mean.
package cache
