// Package stage takes a batch of items through the stages of a pipeline.
//
// A Graph holds the stages that run, each with what it reads from. A stage starts as
// soon as the stages that it needs are done, so that independent stages (the voters)
// work at the same time. Each does, in this order:
//
//	when       for which items, by a rule (rules.go)
//	filter     of a retrieve stage: which entries are searched for an item
//	call       in batches, with retries (call.go); what its kind does is in method.go
//	           and search.go
//	keep, or accept   which candidates or answers count, by a rule; of an election,
//	           whether the verdict is flagged
//	resamples  a voter's items none of whose answers is accepted are asked again, and the
//	           voter is shown those answers (sdk.Item.Rejected); all stay as votes
//	fallback   the first whose rule holds takes over
//	on_error   fail the item, or skip the stage
//
// An item that fails does so alone, with the stage and the cause; Result says what
// became of it. A voter whose service refuses an item (sdk.CodeRefused: a content filter,
// a text that is too long) abstains if another voter has voted for it: its vote is empty
// and has the reason.
//
// An item whose text people have decided about (package reviewed) gets that answer, and no stage
// is called for it. Where entries of the knowledge are held out, no item is.
//
// Where the whole rule of a retrieve stage holds, which is evaluated once, all of the
// knowledge is the candidates of every item: nothing is embedded or searched,
// rerankers are not asked, and voters on candidates abstain. Answers to prompts with
// passages are texts, which need no labels; Result has what the elected one cites.
//
// A stage may have to stop (sdk.CodeStopped): its budget is spent, or its service
// stays down or serves none of its calls. Of the items that it has been given by then
// it answers those whose answers are in the response cache, where its host refuses
// every call of the service (Options.Refuses). It is not called again for others, its
// prompts are not made, and no fallback takes over: nobody would ask it about these
// items again. The other voters answer them, and the results say which voters are
// missing; an item to which they have no acceptable answer is left. A when rule that
// does not hold makes nothing missing. Where no other voter remains, one of the
// election's rules names the voter, or figures have to be of one method
// (Options.Strict), the graph ends (Graph.Ended): items that need the stage are left,
// which is no failure, and the others of those that were read are answered.
//
// Where the service of a stage cannot be asked about an item (sdk.CodeUnavailable: it is down, has no quota left,
// or the run is offline), and neither a fallback nor on_error = "skip" takes over, the item lacks the
// stage in the same way. The stage is asked about the next ones.
//
// Whether a voter that calls a service is asked about an item may be decided elsewhere
// (Options.Ask). Where it is not asked, it is as if its when rule did not hold.
//
// A voter's results may come later (package retry): it waits without a slot, and the
// handle is kept until the items' results are (Graph.Settle). One that asks its service in batches
// (pipeline.Stage.Gathers) gets all items that reach it in one call, as far as a message holds them, and those
// that it is asked again about in another; the other stages then get theirs in parts.
//
// A stage that learns from its knowledge does so before it is called (package fitted; learn.go).
// An election that learns from votes gets those of a second graph (HoldOut), whose items are
// rows of the knowledge that are kept out of what is found for them (package fitted).
//
// The package knows stages by the interfaces of the sdk. It neither starts processes,
// nor reads items, nor keeps results.
package stage
