// Package plugin has the lock, which names the program of each plugin by its hash (lock.go), and what downloads of
// plugins and of models share (transfer.go). Package registry finds and stores the programs. This package looks for
// nothing and starts nothing.
package plugin
