// Package packet has batches of a run as bytes: an order goes to a worker, answers come back.
//
// A packet is two bytes, its Version and what it is, and JSON, compressed with zstd. Texts,
// metadata and entries stand once in a packet, however many items have them, and everything
// refers to them by number. Numbers that a result computes with travel as they are in memory,
// so that there are also those that are none (sdk.Unscored). Texts that are no UTF-8 travel,
// too: a row's other columns may have them.
//
// A result that has travelled makes the same line of the journal, the same output in all formats
// and the same reports as it would have where it was made. Of it stays behind:
//
//   - the texts of prompts: the journal, which is all that reads them, keeps journal.Hash, and
//     that is what travels
//   - of errors, all but the text, the code and the time to wait (sdk.Error), and whether one is
//     an outcome.Failure: reports show the text, and runs end or go on by the code
//   - of a point in time, the name of its zone: what is written has the offset
//   - that metadata is of another type than sdk.Meta allows: it arrives as the JSON that outputs
//     have of it
//   - nothing else, unless Trim drops it before: what only a journal or a report of lists reads
//
// Trim leaves out most votes of a distribution with many labels, too. Outputs and journals have
// the heaviest ones alone, but evaluations count all, and take each voter's heaviest accepted
// one, which may be any of them: outcome.Shorten keeps that one, and the number of the others.
//
// The package knows nothing of servers (package bus), and nothing of who may write what: a
// packet that is read is checked, and one that is damaged, of another version, or too large
// (also: once it is unpacked) is an error.
package packet
