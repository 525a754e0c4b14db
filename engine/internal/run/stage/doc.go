// Package stage takes a batch of items through the stages of a pipeline.
//
// A Graph holds the stages that run, each with its inputs. A stage starts as soon as the stages that it needs are
// done, so that independent stages (the voters) work at the same time. Each does, in this order:
//
//	when       for which items, by a rule (rules.go)
//	filter     for a retrieve stage: which entries are searched for an item
//	call       in batches, with retries (method.go)
//	keep, or accept   which candidates or answers count, by a rule; for an election,
//	           whether the verdict is flagged
//	resamples  a voter is asked again about items without an accepted answer, and
//	           shown the refused answers (sdk.Item.Rejected); all stay as votes
//	fallback   the first whose rule holds takes over
//	on_error   fail the item, or skip the stage
//
// An item that fails does so alone, with the stage and the cause; Result returns its outcome. If a voter's
// service refuses an item (sdk.CodeRefused: a content filter, a text that is too long) and another voter has
// voted, the voter abstains: its vote is empty and has the reason.
//
// If a person decided about an item's text (package reviewed), the item gets that answer, and no stage is
// called for it. This does not apply if entries of the knowledge are held out.
//
// The whole rule of a retrieve stage is evaluated once. If it holds, all entries of the knowledge are the
// candidates of every item: nothing is embedded or searched, rerankers are not asked, and voters on candidates
// abstain. Answers to prompts with passages are texts, which need no labels; Result has the citations of the
// elected answer.
//
// A stage may have to stop (sdk.CodeStopped): its budget is spent, or its service stays down or serves none of
// its calls. Then its host refuses every call to the service (Options.Refuses), and the stage answers only those
// of its present items that are in the response cache. It is not called for other items, and its prompts are not
// made. No fallback takes over, because the stage would then never be asked about these items. The other voters
// answer the items, and the results name the missing voters. An item without an acceptable answer from the other
// voters is left unanswered. If a stage's when rule does not hold for an item, the stage is not missing. The
// graph ends (Graph.Ended) if no other voter remains, or if figures must come from one method (Options.Strict).
// Then items that need the stage are left unanswered, which is no failure, and the other items read so far are
// answered.
//
// If the service of a stage cannot be asked about an item (sdk.CodeUnavailable: it is down, has no quota left, asks
// for a wait of hours, or the run is offline), and neither a fallback nor on_error = "skip" takes over, the stage is
// missing for the item in the same way. The stage is still asked about the next items.
//
// Options.Ask may decide whether a voter that calls a service is asked about an item. If not, the effect is as
// if the voter's when rule did not hold.
//
// A voter's results may come later (package retry): the voter waits without a slot, and its handle is kept until
// the items' results are kept (Graph.Settle). A voter that asks its service in batches (pipeline.Stage.Gathers)
// gets all items in one call, if a message can hold them, and its resamples in another call. The other stages
// then get their items in parts.
//
// A stage that learns from its knowledge does so before it is called (package fitted; learn.go). An election that
// learns from votes gets the votes of a second graph (HoldOut). The items of this graph are rows of the
// knowledge; each row is held out of its own search (package fitted). Voters that call services vote there only
// to calibrate it (Calibrate).
//
// The package knows stages only by the interfaces of the sdk. It starts no processes, reads no items and keeps
// no results.
package stage
