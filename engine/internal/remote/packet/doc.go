// Package packet writes batches of a run as bytes: an order goes to a worker, answers come back.
//
// A packet is two bytes, its Version and what it is, and CBOR (RFC 8949) of the engine's own types:
// run.Order, and run.Answers with the rows; compressed with zstd. Types that stand behind
// interfaces have tags (cbor.go). Numbers are as in memory, NaN and infinities too, and texts
// may hold any bytes: a row's other columns may not be UTF-8.
//
// A result that arrived makes the same line of the journal, the same output in all formats
// and the same reports as where it was made. It arrives without:
//
//   - the texts of prompts: the journal alone reads them, and keeps journal.Hash of each, which
//     arrives
//   - of an error, everything but its text, its code and the time to wait (sdk.Error), and whether
//     it is an outcome.Failure: reports show the text, and a run ends or goes on by the code
//   - the name of a time zone: what is written has the offset
//   - the type of metadata that sdk.Meta does not allow: it arrives as a value that has the same JSON
//   - what Trim dropped before: what only a journal or a report of lists reads
//
// Trim leaves out most votes of a distribution with many labels. Outputs and journals have
// the heaviest ones alone, but evaluations count all, and take each voter's heaviest accepted
// one, which may be any of them: outcome.Shorten keeps that one, and the number of the others.
//
// The package does not know servers (package bus), nor who may write what. It checks each packet
// that it reads: one that is damaged, of another version, or too large once it is unpacked is an
// error.
package packet
