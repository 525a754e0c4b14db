// Package spend decides about which items of a run paid voters are asked, if the run has a limit of
// calls or money for them. Paid voters are voters that call services.
//
// A run takes two passes over its file. In the first (Survey) it asks no paid voter: the free voters
// elect an answer to every item, and the cost of asking the paid voters is forecast from the prompts
// that they would get. A voter's when rule excludes items as usual. Then the items are sorted by
// confidence, lowest first, or by agreement if the election estimates no confidence. Items without an
// answer come first; ties are in the order of the input.
//
// In the second pass (Round, Asking) the paid voters are asked about the items in that order, in
// rounds. A round takes the items that fit into the rest of the limit at their highest possible
// cost. After a round, the real cost of its items counts, and the rest of the limit pays for
// another round. An item that does not fit even alone is skipped. A resumed run counts the spending
// in the journal.
//
// So rounds ask about the same items as asking one by one would, at any concurrency. The choice depends on
// the input, the file and the services' answers. It does not depend on timing, or on the response cache,
// whose answers count like others. Forecasts use only the file, not what earlier runs learnt about a
// model. With a limit of calls all this is certain. With a limit of money it is certain if an item's
// highest cost is known: the file or an earlier call must say whether the model thinks. Otherwise the
// likely cost counts until the real cost is known, rounds are small, and the last round may exceed the
// limit.
//
// If a service gives as many answers as one request asks for, a call is one request. Each resample
// is another call. Failed requests that are sent again do not count.
//
// If no paid voter can be asked any more (Abandon), the remaining items of the round are answered
// without one. A resumed run asks about them and about other items that fit. Standard input, which
// cannot be read twice, and single items have no limit of this kind.
//
// The limit applies only to voters. The budget of package governor limits enrichers, embedders and
// rerankers, too: it stops all stages that call services.
//
// The package calls no stage and reads no input; package workspace does both.
package spend
