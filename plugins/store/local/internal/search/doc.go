// Package search answers queries from a snapshot: it checks them, applies filters, runs
// both legs and turns rows into hits, each with the score of the other leg. It leaves
// fusing the legs to sdk/fuse.
package search
