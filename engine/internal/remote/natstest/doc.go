// Package natstest starts, stops and restarts NATS servers inside tests: one, or a cluster of
// three. Only tests import it, since racflow itself contains no server.
//
// The servers are real, so tests see what lost servers really do.
package natstest
