// Package lock makes a process the only writer of a file, or one of those that read it. The
// lock ends with the process, however that ends: it leaves nothing behind. The engine and the built-in
// stores take the same one.
//
// The file that is written is the file that is locked, so it may be renamed or
// removed while it is locked. Lock libraries open a lock file by themselves, do not
// hand it out, and notice neither; this package is flock(2) and that check.
package lock
