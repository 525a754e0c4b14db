// Package journal keeps a run on disk. It writes every result immediately, so that an unfinished
// run can be resumed, and a finished run can be inspected.
//
// A run is a folder:
//
//	manifest.json      what was run (manifest.go)
//	journal.jsonl      a line for each answered item, in order of completion: the
//	                   results of the stages. Each batch appends once. With the input
//	                   it suffices to write the output again byte for byte, so it does not
//	                   contain the texts of the items.
//	failures.jsonl     the items that failed, with stage and reason; emptied when the run
//	                   is resumed, which tries them again
//	provisional.jsonl  the items answered without a stopped voter, as in
//	                   journal.jsonl and with the missing voters; emptied when the run
//	                   is resumed, which asks about them again
//	profiles/          what the run knows about the models that it asks (governor.Profiles)
//	totals.json        how the run ended. Missing: it was cut off.
//
// In a run with a spending limit (package spend), an item that paid voters were asked about has two
// lines. The first has the answer of the free voters, with the forecast of the cost ("unasked").
// The second has the final answer, with the actual cost ("asked"). If a voter failed or stopped,
// the item has only the first line.
//
// Notable items also have Seen: items that are flagged, failed, wrong or without an answer, or all
// items with KeepAll. Seen has the ids and scores of the candidates of every retrieve and rerank
// stage, hashes of the prompts, the keys of the requests in the response cache, the rules that
// decided something, and the stages that were called again. Seen has no texts: candidates' texts
// are in the generation that the manifest names, and replies are in the cache.
//
// Every line and file has a checksum (sealed.go). A line that was changed later, or that was cut
// off when the process was killed, is ignored: its item is answered again.
//
// A run may answer a part of the input (Share). CheckShares checks that runs are all parts of one run, and
// Adopt copies their lines into another run's journal.
//
// Sync defines which results survive a power failure; the end of the process never loses a kept
// result. A run's folder is locked while it is written.
//
// Runs is the folder of all runs; package eval compares two runs. This package does not decide when
// a run is resumed, and reports nothing.
package journal
