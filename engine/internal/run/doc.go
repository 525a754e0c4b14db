// Package run takes the items of an input through a pipeline.
//
// Items travel in batches. Only so many batches are under way at a time, which is all
// the back-pressure there is: a batch is read only when one has been answered. Results
// come out in the order of the input.
//
// Where all stages work on this machine, four batches are under way. Where one asks
// other machines they are small and many: its calls, of one item each, then reach the
// concurrency of its limit also when a rule sends it few of the items, or when its
// service asks the first of them to come back later. The local stages beside it are
// still called by few batches at a time.
//
// Where a stage asks a service in batches (batch = true) all items of the input travel together,
// 50,000 at most, or as many as the pipeline's own batch says: for the service takes hours for
// a batch, however many they are. All of them are kept in memory until then, with their candidates
// and prompts: some 55 kB each where a run of 5,000 was measured against one of 100 by the largest
// size of the process, with 40 candidates and a prompt of 1.4 kB. That would be 2.7 GB for 50,000; a
// smaller batch in the pipeline block bounds it. The next ones are read meanwhile, and begin when
// these are answered.
//
// What becomes of items goes to a Journal as soon as it is known, and comes from there
// where an earlier part of the run has answered them.
//
// Where an input is worked through in several passes, Kept returns what the journal has at the end.
//
// What happens to an item within the stages is in engine/internal/run/stage, what comes out in
// engine/internal/run/outcome.
package run
