// Package run takes items through the stages of a pipeline.
//
// Items travel in batches. Only so many batches are under way at a time, which
// is all the back-pressure there is: a batch is read only when one has been
// answered. Within a batch a stage starts as soon as the stages that it needs are
// done, so independent stages (the voters) work at the same time. Answers come
// out in the order of the input.
//
// Where all stages work on this machine, four batches are under way. Where one
// asks other machines they are small and many: its calls, of one item each, then
// reach the concurrency of its limit also when a rule sends it few of the items,
// or when the first of them is told to come back later. The local stages beside
// it are still called by few batches at a time.
//
// For each stage the order is: when (per item), filter, the call with its
// retries, keep or accept, fallback, on_error. An item that fails does so alone, with
// the stage and the cause; the others of its batch go on. A voter's item none of
// whose answers is accepted is asked again, as often as its resamples allow; all
// answers stay as votes.
//
// Where the whole rule of a retrieve stage holds, which is asked once, all of the
// knowledge is the candidates of every item: nothing is embedded or searched,
// rerankers are not asked, and voters on candidates abstain. Answers to prompts
// with passages are texts, which need no labels; what the elected one cites is in
// its result.
//
// A stage may have to stop (sdk.CodeStopped): its budget is spent, or its service
// stays away or serves none of its calls. Of the items that it has been given by then
// it answers those whose answers are in the response cache, where its host keeps it
// from calling the service (Options.Refuses). It is not called again for others, its
// prompts are not made, and no fallback takes over: nobody would ask it about these items
// again. The other voters answer them, and the results say which voters are
// missing; an item to which they have no acceptable answer is left. A when rule
// that does not hold makes nothing missing. Where no other voter remains, one of
// the election's rules names the voter, or figures have to be of one method
// (Options.Strict), the run ends early: items that need the stage are left, which
// is no failure, the others of those that were read are answered, and nothing else
// is read.
//
// What becomes of items goes to a Journal as it is reached, and comes from there
// where an earlier part of the run has reached it.
//
// The package knows stages by the interfaces of the sdk and starts no process
// itself; Options.Launch does.
package run
