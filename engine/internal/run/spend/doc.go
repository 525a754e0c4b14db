// Package spend decides about which items of a run those voters are asked that call
// services (the paid voters), where a run may make only so many calls or spend only so
// much on them.
//
// Over a file a run takes two passes. In the first (Survey) no paid voter is asked: the
// free voters elect an answer to every item, and what asking the paid ones would take is
// forecast from the prompts that they would get. A voter's when rule decides as ever
// which items it could be asked about. Then the items are put in order, by expected gain
// per forecast cost, ties by position in the input. The gain of an item is one minus its
// confidence, or its agreement where the election estimates no confidence, and 1 where
// there is no answer. How many errors a voter mends is taken to be the same share of them
// everywhere, so that share changes nothing in the order.
//
// In the second pass (Round, Asking) items are asked in that order, in rounds: as many
// as fit into what is left if each takes as much as it can. When a round has ended, what its
// items have really taken counts, and the rest pays for another round. An item that does not
// fit even alone is passed by. A resumed run counts what the journal says was taken.
//
// So the items that are asked are those that would be if they were asked one by one, at
// any concurrency: they depend on the input, the file and what services answer, and
// not on timing or on what the response cache holds, whose answers count like others.
// What is forecast goes by the file alone, and not by what earlier runs found out of a model.
// That is certain with a number of calls; with money it is where somebody knows what an item
// takes at most: where the file, or else an earlier call, says whether the model thinks. Where
// nobody does, rounds are small, and the last one may exceed the limit.
//
// A call is a request, if its service gives as many answers as a request asks for; each
// resample is another. Requests that failed and are sent again are not counted.
//
// Standard input cannot be read again. There paid voters are asked until the limit is
// reached (Counting), in the order in which items reach them.
//
// The limit is on voters. What enrichers, embedders and rerankers take is bounded by
// the budget of package governor, which stops whatever calls a service.
//
// The package calls no stage and reads no input; package engine does both.
package spend
