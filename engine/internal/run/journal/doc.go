// Package journal keeps a run on disk: every result as it is reached, so that a run that ended
// early can be resumed, and one that ended can be inspected.
//
// A run is a folder:
//
//	manifest.json      what was run (manifest.go)
//	journal.jsonl      a line for each answered item, in order of completion: what the
//	                   stages made of it. Appended to, a write per batch. With the input
//	                   it is enough to write the output again byte for byte, so it does not
//	                   have the texts of the items.
//	failures.jsonl     the items that failed, with stage and reason; begun anew when the run
//	                   is resumed, which tries them again
//	provisional.jsonl  the items answered without a voter that had to stop, as in
//	                   journal.jsonl and with the missing voters; begun anew when the run
//	                   is resumed, which asks about them again
//	profiles/          what the run knows of the models that it asks (package profile)
//	totals.json        how the run ended. Missing: it was cut off.
//
// A run with a spending limit (package spend) has two lines for an item that it asked about: the
// answer of the free voters, with the forecast of asking ("unasked"), and the later one, which
// counts, with what asking took ("asked"). If a voter failed or had to stop, the item keeps the
// first.
//
// An item that is flagged, failed, wrong or without an answer, or with KeepAll every item, also has
// Seen: the ids and scores of the candidates of every retrieve and rerank stage, hashes of the
// prompts, the keys of the requests in the response cache, the rules that decided something, and
// which stages were called again. Seen has no texts: those of candidates are in the generation that
// the manifest names, and replies in the cache.
//
// Every line and file is sealed (sealed.go). A line that was changed afterwards, or that a kill cut
// off, is ignored: its item is answered again.
//
// A run may answer a part of the input (Share). CheckShares says whether runs are all parts of one, and Adopt
// puts what they have into another run's journal.
//
// Sync says what a power failure leaves of a run; the end of the process never loses anything that
// was kept. A run's folder is locked while it is written.
//
// Runs is the folder of all runs; package eval compares two runs. This package decides neither when
// a run is resumed nor what is reported of it.
package journal
