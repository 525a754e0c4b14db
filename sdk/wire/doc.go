// Package wire converts between the records of package sdk and the messages of sdk/proto. It also
// holds what both ends of a plugin's connection must agree on: the handshake, the number of calls at
// a time, and the limits of a message.
//
// Only the columns that a stage reads are encoded, and a column of empty values is left out. Decoders
// trust nothing: they check every length, offset and index and return an error. So a faulty plugin
// can neither crash the engine nor make it allocate more than it was sent.
//
// The package opens no stream and starts no process. The engine's end of the connection is in
// client.go, the plugin's in package serve.
package wire
