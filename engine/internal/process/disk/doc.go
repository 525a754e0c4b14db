// Package disk writes files that other programs find whole or not at all, and makes folders that only their owner can
// look into.
package disk
