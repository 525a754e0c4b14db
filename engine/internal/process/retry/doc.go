// Package retry calls stages again after failures that may pass: with single rows of a batch, with
// the whole batch, or, if a row may be at fault, with parts of it, until that row stands alone. So a
// row that ends the stage's process or takes all of its time fails alone.
//
// The cost is bounded. A row among n that ends the process ends it once for each halving, log2 n
// times, besides the times that the whole batch did; alone, it ends the process up to five more
// times, since it is not blamed for the end of a process that had answered others before. A row that
// hangs fails within the timeout of its stage, counted from the first call that it was in; the work
// on the other rows of the batch, one after the other, comes on top only where it takes longer than
// a quarter of that. Each further row that hangs takes half of the timeout. A batch without any
// answer is given up after a few single rows. A call that others held up before it was sent is
// repeated, up to ten times in a row.
//
// The package does not know what rows are. Its caller says how often to retry, and what ends it.
package retry
