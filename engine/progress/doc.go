// Package progress says how far a piece of work is, and how long the rest of it will
// take.
//
// What is left is estimated from what was done lately, not since the start: a resumed run
// begins with answers that it has, and services become slower. Where little is known, or
// more was done than was expected, there is no estimate rather than a wrong one.
//
// The package shows nothing, and does not know what is done.
package progress
