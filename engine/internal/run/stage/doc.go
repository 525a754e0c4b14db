// Package stage takes a batch of items through the stages of a pipeline.
//
// A Graph holds the stages that run, each with its inputs. A stage starts as soon as the stages that it needs are
// done, so that independent stages (the voters) work at the same time. Each does, in this order:
//
//	when       for which items, by a rule (rules.go)
//	filter     of a retrieve stage: which entries are searched for an item
//	call       in batches, with retries; method.go has what each kind does
//	keep, or accept   which candidates or answers count, by a rule; of an election,
//	           whether the verdict is flagged
//	resamples  a voter is asked again about items without an accepted answer, and
//	           shown the refused ones (sdk.Item.Rejected); all stay as votes
//	fallback   the first whose rule holds takes over
//	on_error   fail the item, or skip the stage
//
// An item that fails does so alone, with the stage and the cause; Result returns its outcome. If a voter's
// service refuses an item (sdk.CodeRefused: a content filter, a text that is too long), the voter abstains if
// another voter has voted for the item: its vote is empty and has the reason.
//
// If people decided about an item's text (package reviewed), the item gets that answer, and no stage is called
// for it. Where entries of the knowledge are held out, this does not apply.
//
// If the whole rule of a retrieve stage holds, which is evaluated once, the whole knowledge is the candidates of
// every item: nothing is embedded or searched, rerankers are not asked, and voters on candidates abstain. Answers
// to prompts with passages are texts, which need no labels; Result has the citations of the elected one.
//
// A stage may have to stop (sdk.CodeStopped): its budget is spent, or its service stays down or serves none of
// its calls. Of the items that it already has, it answers those in the response cache, while its host refuses
// every call of the service (Options.Refuses). It is not called again for other items, its prompts are not made,
// and no fallback takes over: nobody would ask it about these items again. The other voters answer them, and the
// results name the missing voters; an item without an acceptable answer from them is left. A when rule that does
// not hold makes nothing missing. The graph ends (Graph.Ended) if no other voter remains, or figures must come
// from one method (Options.Strict). Then items that need the stage are left, which is no failure, and the other
// items read so far are answered.
//
// If the service of a stage cannot be asked about an item (sdk.CodeUnavailable: it is down, has no quota left, asks
// for a wait of hours, or the run is offline), and neither a fallback nor on_error = "skip" takes over, the stage is
// missing for the item in the same way. The stage is asked about the next items.
//
// Options.Ask may decide whether a voter that calls a service is asked about an item. If it is not asked, it is
// as if its when rule did not hold.
//
// A voter's results may come later (package retry): it waits without a slot, and the handle is kept until the
// items' results are (Graph.Settle). A voter that asks its service in batches (pipeline.Stage.Gathers) gets all
// items that reach it in one call, as far as a message holds them, and its resamples in another; the other stages
// then get their items in parts.
//
// A stage that learns from its knowledge does so before it is called (package fitted; learn.go). An election that
// learns from votes gets those of a second graph (HoldOut), whose items are rows of the knowledge, held out of
// their own searches (package fitted). Voters that call services vote there only to calibrate it (Calibrate).
//
// The package knows stages by the interfaces of the sdk. It neither starts processes, nor reads items, nor keeps
// results.
package stage
