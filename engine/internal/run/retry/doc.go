// Package retry calls stages again after failures that may pass: with single rows of a batch, with
// the whole batch, or, if a row may be at fault, with each half, until that row stands alone. So a
// row that ends the stage's process or takes all of its time fails alone.
//
// The cost is bounded. A row among n that ends the process ends it once for each halving, log2 n
// times, besides the times that the whole batch did; alone, it ends the process up to five more
// times, since it is not blamed for the end of a process that had answered others before. A row
// that hangs takes less than the time of one more batch, since each half has half the time (but
// never less than a few seconds), and once more its own part, with nothing else running: another
// row may have held up the process. If r rows hang, it is log2 r + 2 times the time of a batch. A
// batch without any answer is given up after a few single rows: about twice the time of a batch. A
// call that was not sent in its time, because other rows held up the process, is repeated, up to
// ten times per batch.
//
// The package does not know what rows are. Its caller says how often to retry, and what ends it.
package retry
