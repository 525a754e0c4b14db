// Package run answers the items of an input by a pipeline.
//
// Items travel in batches. Only so many batches are in work at a time, which is all the
// back-pressure there is: a batch is read only when one has been answered. Results come out in the
// order of the input.
//
// If all stages work on this machine, four batches are in work. If a stage asks other machines,
// batches are small and many: its calls, of one item each, then reach the concurrency of its limit
// even when a rule sends it few of the items, or when its service defers the first of them. The
// local stages beside it still get few batches at a time.
//
// If a stage asks a service in batches (batch = true), all items of the input travel together,
// 50,000 at most, or as many as the pipeline's own batch argument says, because the service takes
// hours for a batch of any size. All of them stay in memory until then, with their candidates and
// prompts: some 55 kB each, by the largest size of the process in a run of 5,000 against one of 100,
// with 40 candidates and a prompt of 1.4 kB. For 50,000 that would be 2.7 GB; a smaller batch in the
// pipeline block bounds it. The next items are read meanwhile, and begin when these are answered.
//
// A Journal gets the outcome of items as soon as it is known, and has the answers of an earlier part
// of the run. If a run makes several passes over an input, Kept returns what the journal has at the
// end.
//
// Package stage describes what happens to an item within the stages, package outcome what comes out.
package run
