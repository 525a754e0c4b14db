// Package retry calls stages again after failures that may pass, with whatever
// failed: rows of a batch alone, a batch as a whole, or, where a row of the batch
// may be at fault, each half of it, until that row stands alone. A row that ends
// the stage's process or takes all of its time so fails alone.
//
// What that costs at most: a row among n that ends the process ends it once for
// each halving, log2 n times, beside the times that the batch did; a row that stands
// alone ends up to five more, since it is not blamed for the end of a process that had
// answered others before. A row that hangs takes less than the time of one more batch,
// since each half has half the time (but never less than a few seconds), and once more
// its own part, with nothing else under way: another row may have held up the process.
// Where r rows hang it is log2 r + 2 times the time of a batch. A batch of which nothing
// is answered at all is given up after a few single rows: about twice the time of a
// batch. A call that was not even sent in its time, because other rows held up the
// process, is made again, up to ten times for a batch.
//
// It does not know what rows are. Whoever calls says how often, and what ends it.
package retry
