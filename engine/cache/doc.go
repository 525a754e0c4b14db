// Package cache is the response cache: it stores responses of services on disk by the content
// of their requests, so that the same request, in this run or a later one, gets the same
// response and costs nothing.
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
// The package does not know what keys and values mean.
package cache
