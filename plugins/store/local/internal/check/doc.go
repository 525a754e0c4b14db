// Package check compares a collection with itself: every checksum, and every index with
// the rows. It repairs nothing.
package check
