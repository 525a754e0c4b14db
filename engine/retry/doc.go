// Package retry calls stages again after failures that may pass, with whatever
// failed: rows of a batch alone, a batch as a whole, or, where the batch may be at
// fault, each half of it.
//
// It does not know what rows are. Whoever calls says how often, and what ends it.
package retry
