// Package recorded is a voter whose answers are in a file: those of annotators, of another
// system or of an earlier run. It votes for an item by its id, and abstains where the
// file has no answer for it. An item without an id has the number of its line.
//
// The file is TSV with a header line, or JSONL where its name ends in .jsonl or .ndjson,
// with the columns (properties)
//
//	id      the item's
//	voter   whose answer it is; without this column all answers are the stage's
//	answer  the label; empty or null: there is no answer
//	weight  optional; at least 0
//
// and any others, which are ignored. The stage reads the answers of one voter: the one
// with its block's name, or the one that the argument voter names. A line of JSONL may
// also hold a list `votes` of objects with voter, answer and weight, as the results of a
// run do; an empty answer among them that was accepted is a vote for none of the labels.
// Elsewhere the argument none names the answer that is such a vote.
//
// An item's rows are read together, in their order, wherever they stand in the file.
// Without weights, or with weights that are all 1, each is a sample of its own, as the
// samples of a language model are; a repeated row is two samples. Otherwise they are one
// sample, a distribution over labels, in which a label counts once with the sum of its
// weights.
//
// A row that cannot be read is an error that names the line, and the stage does not
// open. The answers of the voter are kept in memory: with ids of 12 characters, 89 bytes
// for an item with one answer and 16 for each further one. More than 5 million are
// refused.
package recorded
