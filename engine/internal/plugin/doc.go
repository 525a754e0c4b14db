// Package plugin contains the lock (lock.go), which names the program of each plugin by its hash, and what
// downloads of plugins and of models share (transfer.go). Package registry finds and stores the programs. This
// package searches for nothing and starts nothing.
package plugin
