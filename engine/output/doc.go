// Package output writes files that other programs find whole or not at all.
//
// What replaces FILE is written to FILE.part beside it, under a lock, and takes
// FILE's name once it is complete. Until then FILE is what it was before, and
// whoever wants to write it too is refused before any work. A process that is
// killed leaves FILE.part, and no lock: who writes FILE next begins it anew, and
// can see before whether something is left there. Once FILE is replaced, both its
// content and its name are on the disk.
//
// Permissions of an existing FILE are kept. Where FILE is a symbolic link, what it
// leads to is replaced. Standard output, pipes and devices are written to directly.
//
// The package does not know what it writes. Who calls it decides when that is
// complete.
package output
