// Package integrity has the checksum of all files of the store and the error for bytes
// that no longer have theirs.
package integrity
