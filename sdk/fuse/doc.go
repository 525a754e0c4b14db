// Package fuse makes one ranking of the two legs of a search: the dense leg,
// which compares vectors, and the lexical leg, which compares words.
//
// Every store returns a list per leg, and this package alone merges them, so
// that the same knowledge ranks alike whichever store keeps it. It does not
// search, does not fetch entries and knows nothing of how a leg scored.
package fuse
