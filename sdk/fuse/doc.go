// Package fuse makes one ranking of the two sides of a search: the dense side,
// which compares vectors, and the lexical side, which compares words.
//
// Every store returns a list per side, and this package alone merges them, so
// that the same knowledge ranks alike whichever store keeps it. It does not
// search, does not fetch entries and knows nothing of how a side scored.
package fuse
