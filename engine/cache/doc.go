// Package cache keeps answers of services on disk, by content: whoever asks for
// the same again, in this run or a later one, gets the same answer and pays
// nothing.
//
// A folder holds files of records, which are only ever appended to. Each
// process writes to a file of its own, which a lock keeps others from, and
// takes over one that nobody writes, so that there are no more files than there
// were processes at a time. All files are read: their index is in memory, and
// what other processes append is found when a key is missed, at most once a
// second.
//
// Of processes that Add to one key at a time, the first stays. No lock is held over all
// files: where two add within the same moment, before either can see the other's
// record, the later one is what is got from then on.
//
// A record that Put or Add has returned for is in the hands of the operating system:
// it survives the end of every process, however that comes. It is not forced to
// the disk one by one, so a machine that loses power may lose the last seconds.
//
// Records carry checksums. One that is not whole at the end of a file was cut
// off, or is being written, and does not count; anything else that does not fit
// is damage: it is told, and what follows it in its file is passed over. An
// answer that is lost in this way is asked for again.
//
// The package does not know what keys and values mean.
package cache
