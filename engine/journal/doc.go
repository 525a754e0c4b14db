// Package journal keeps runs on disk: what was run and every result as it is
// reached, so that a run that ended early can be resumed.
//
// A run is a folder below the runs folder of the state:
//
//	manifest.json   what was run: the parts of the pipeline, input, knowledge and plugins by
//	                their fingerprints, and what a resumed run gets again: values that
//	                stages chose when they started, and prices; and for who reads the run
//	                later, the columns of its input and the models that it asked. Written
//	                once, before the first item.
//	journal.jsonl   a line per item that was answered, in order of completion:
//	                what the stages made of it. Appended to, a write per batch.
//	                With the input it is enough to write the output again byte
//	                for byte, so the texts of the items are not in it. About 1 KB
//	                and 3 µs of processor time an item with two statistical
//	                voters.
//	failures.jsonl  the items that failed, with stage and reason; begun anew when
//	                the run is resumed, which tries them again
//	provisional.jsonl  the items that were answered without a voter that had to
//	                stop, as in journal.jsonl and with the voters that are missing;
//	                begun anew when the run is resumed, which asks them again
//	profiles/       what the run knows of the models that it asks (package profile)
//	totals.json     how the run ended. Missing: it was cut off.
//
// A run that spends where it counts (package spend) has two lines of an item that it asked
// about: the answer of the free voters, with what asking would take ("unasked"), and
// the later one, which counts, with what it took ("asked"). Items of which a voter failed or
// had to stop keep the first.
//
// A line that is cut off, as a kill may leave it, is left out: its item is
// answered again. Nothing is forced to the disk; what the machine loses when its
// power fails is answered again in the same way. A run's folder is locked while
// it is written.
//
// Names of runs rise in the order in which they began, even where the clock is set
// back: a name is never lower than the newest that is there. Beginning a run removes
// the oldest finished ones beyond 20. A run that resuming would add to is
// unfinished (see Totals.Unfinished) and stays until it is finished or removed
// by hand. Items that failed do not make a run unfinished: the same row may fail
// each time.
//
// The package knows results and the checked pipeline. It decides neither when a
// run is resumed nor what is reported of it.
package journal
