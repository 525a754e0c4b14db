// Package remote is the engine's end of the wire: a stage in another process
// as the Go interfaces of package sdk, and what the engine shares with it.
//
// A Conn is the connection to one process, on which any number of goroutines call at
// the same time; a Stage turns typed calls into requests and replies into results; a
// HostService answers what plugins ask of the engine. The package does not start,
// watch or restart processes: that is the engine's work, and the conformance suite
// has no process at all.
package remote
