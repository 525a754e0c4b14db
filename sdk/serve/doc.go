// Package serve runs a plugin: a plugin's main function only calls Plugin. The package answers the
// engine's requests over gRPC, each in its own goroutine and within its deadline. It turns panics
// into failures. It ends the process when the engine ends, in whatever way the engine ends.
//
// The package starts no process and knows nothing about the engine; the other end of the connection
// is in package wire (client.go).
package serve
