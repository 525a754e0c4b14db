// Package wal reads and writes the log of a collection: frames of puts, deletes and
// commits, and the base that lists the files of segments. It finds the last commit, and
// tells what a killed writer left from damage. It does not interpret the changes.
package wal
