// Package publish makes a release of a plugin from its built programs and uploads it, signed where a key is given.
//
// Programs lie in a folder by platform, OS_ARCH/racflow-plugin-NAME, each a file or a folder
// with all that belongs to it; any_any is for a plugin that is the same everywhere. The
// description comes from the program that runs on this machine, so one of them has to. A release
// gets its tag last, when it is there as a whole and signed: nobody finds a part of one.
//
// Building programs is not done here, and neither is a version that was published before changed.
package publish
