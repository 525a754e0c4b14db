// Package packet encodes the batches of a run: orders for workers, and their answers.
//
// A packet has two bytes, Version and kind, followed by zstd-compressed CBOR (RFC 8949) of the
// engine's types: run.Order, or run.Answers with the rows. Types behind interfaces have tags
// (cbor.go). Numbers keep their form in memory, including NaN and infinities. Texts may hold any
// bytes, because a row's other columns may not be UTF-8.
//
// A decoded result yields the same journal line, the same output in all formats and the same
// reports as the original. It lacks:
//
//   - the texts of prompts: only the journal reads them, and it needs only the journal.Hash of each,
//     which is sent
//   - everything of an error except its text, its code and the time to wait (sdk.Error), and whether
//     it is an outcome.Failure: reports show the text, and the code decides whether a run ends
//   - the name of a time zone: the offset is sent
//   - the type of metadata that sdk.Meta does not allow: it becomes a value with the same JSON
//   - what Trim dropped before: data for the journal or for a report of lists only
//
// Trim drops most votes of a distribution with many labels. Outputs and journals show only the
// heaviest votes, but evaluations count all and use each voter's heaviest accepted one, which may
// be any vote: outcome.Shorten keeps that one, and the number of the dropped ones.
//
// The package knows neither servers (package bus) nor who may write what. It checks each packet
// that it decodes: a damaged packet, another version, or too large content is an error.
package packet
