// Package wire converts between the records of package sdk and the messages of
// sdk/proto, and holds what both ends of a plugin process must agree on: the
// handshake, how many calls there are at a time, and the limits of a message.
//
// Only the columns that a stage reads are encoded, and a column whose every
// value is empty is left out. Decoders trust nothing: they check every length,
// offset and index and return an error, so that a faulty plugin can neither
// crash the engine nor make it allocate more than it was sent.
//
// The package opens no stream and starts no process; see serve and remote for
// the two ends of the wire.
package wire
