// Package run answers the items of an input by a pipeline.
//
// Items travel in batches. A run works on a limited number of batches at a time, which is the only
// back-pressure: the next batch is read only when another has been answered. Results come out in
// the order of the input.
//
// If all stages work on this machine, four batches are in work. If a stage asks other machines,
// batches are small and many: the stage sends one item per call. With many batches, its calls reach
// the concurrency of its limit even when a rule sends the stage few items, or when the service
// defers the first items. Local stages of the same pipeline still get few batches at a time.
//
// If a stage asks a service in batches (batch = true), all items of the input travel together,
// because the service takes hours for a batch of any size. The limit is 50,000 items, or the
// pipeline's batch argument. Until the answers come, all items stay in memory with their candidates
// and prompts: about 55 kB each, measured as the peak size of the process with 5,000 items against
// 100, with 40 candidates and a prompt of 1.4 kB. 50,000 items would take 2.7 GB; a smaller batch in
// the pipeline block takes less. Without that argument, the next items are read meanwhile, and start
// when the first are answered.
//
// A Journal gets the outcome of items as soon as it is known, and returns the answers of an earlier
// part of the run. After several passes over an input, Kept returns the results in the journal.
//
// Package stage takes items through the stages; package outcome defines the results.
package run
