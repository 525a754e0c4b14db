// Package journal keeps a run on disk: every result as it is reached, so that a run that
// ended early can be resumed, and one that ended can be looked at.
//
// A run is a folder:
//
//	manifest.json      what was run (manifest.go)
//	journal.jsonl      a line per item that was answered, in order of completion: what the
//	                   stages made of it. Appended to, a write per batch. With the input
//	                   it is enough to write the output again byte for byte, so the texts
//	                   of the items are not in it.
//	failures.jsonl     the items that failed, with stage and reason; begun anew when the run
//	                   is resumed, which tries them again
//	provisional.jsonl  the items that were answered without a voter that had to stop, as in
//	                   journal.jsonl and with the voters that are missing; begun anew when
//	                   the run is resumed, which asks them again
//	profiles/          what the run knows of the models that it asks (package profile)
//	totals.json        how the run ended. Missing: it was cut off.
//
// A run that spends where it counts (package spend) has two lines of an item that it asked
// about: the answer of the free voters, with what asking would take ("unasked"), and
// the later one, which counts, with what it took ("asked"). Items of which a voter failed or
// had to stop keep the first.
//
// Items that are flagged, failed, wrong or without an answer, or with KeepAll every item, have what
// was seen of them (Seen): the ids and scores of the candidates of every retrieve and rerank
// stage, hashes of the prompts, the keys of the requests in the response cache, the rules that
// decided something, and which stages were called again. Texts are not in it: those of candidates
// are in the generation of the knowledge, which the manifest names, and replies in the cache.
//
// Every item has a digest of what it got from the knowledge (outcome.Basis), so that another run
// may take its answer (again.go); one that was taken names the run that gave it.
//
// Every line and file is sealed (sealed.go). A line that was changed afterwards, or
// that is cut off, as a kill may leave it, is left out: its item is answered again.
//
// Sync says what a power failure leaves of a run; the end of the process loses nothing
// that was kept in any case. A run's folder is locked while it is written.
//
// Sub-packages: manifest says what was run, runs is the folder of all runs, compare sets two
// runs side by side. This package decides neither when a run is resumed nor what is reported
// of it.
package journal
