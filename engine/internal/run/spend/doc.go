// Package spend decides which items of a run the paid voters, those that call services, are asked
// about, if the run has a limit of calls or money for them.
//
// A run takes two passes over its file. In the first (Survey) it asks no paid voter: the free voters
// elect an answer to every item, and the cost of asking the paid ones is forecast from the prompts
// that they would get. A voter's when rule decides as ever which items it could be asked about.
// Then the items are sorted by confidence, or by agreement if the election estimates none; those without
// an answer come first, ties are in the order of the input.
//
// In the second pass (Round, Asking) items are asked about in that order, in rounds: as many as fit
// into the rest of the limit if each takes as much as it can. After a round, the real cost of its
// items counts, and the rest of the limit pays for another. An item that does not fit even alone is
// skipped. A resumed run counts the spending in the journal.
//
// So rounds ask about the same items as asking one by one would, at any concurrency: the choice
// depends on the input, the file and the services' answers, and not on timing or on the response
// cache, whose answers count like others. Forecasts use only the file, not what earlier runs learnt
// about a model. With a limit of calls all this is certain. With money it is if an item's highest
// cost is known: if the file, or else an earlier call, says whether the model thinks. Otherwise the
// likely cost counts until the real one is known, rounds are small, and the last one may exceed the limit.
//
// A call is a request, if its service gives as many answers as a request asks for; each resample is
// another. Failed requests that are sent again do not count.
//
// If no paid voter can be asked any more (Abandon), the items of the round that are left lack it, and a
// resumed run asks about them and about what else fits. Standard input, which cannot be read twice, and
// single items have no limit of this kind.
//
// The limit applies to voters. The budget of package governor, which stops whatever calls a
// service, bounds enrichers, embedders and rerankers.
//
// The package calls no stage and reads no input; package engine does both.
package spend
