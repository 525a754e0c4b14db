// Package apart reads files in a process of their own, since a few hostile bytes can make a
// reader ask for all memory or never end: the process is this program, started again, and has
// a bounded time, on Linux bounded memory (1 GB), next to no environment, and a folder for
// temporary files that is removed with it. A file that breaks its reader is an error of that
// file alone.
//
// The package knows no format: whoever reads documents names the readers that Serve has.
package apart
