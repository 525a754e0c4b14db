// Package recorded is a voter whose answers stand in a file: those of
// annotators, of another system or of an earlier run. It votes for an item by
// its id, and abstains where the file has no answer for it. An item without an
// id has the number of its line.
//
// The file is TSV with a header line, or JSONL where its name ends in .jsonl or
// .ndjson, with the columns (properties)
//
//	id      the item's
//	voter   whose answer it is; without this column all answers are the stage's
//	answer  the label; where it is empty, or null, there is no answer
//	weight  optional; at least 0
//
// and any others, which are passed over. Of the voters the stage reads the one
// that has its block's name, or the one that the argument voter names. A line
// of JSONL may also hold a list `votes` of objects with voter, answer and
// weight, as the results of a run do; an empty answer among them that was
// accepted is a vote for none of the labels. So is, elsewhere, what the argument
// none says.
//
// An item's rows are read together, in their order, wherever they stand in the
// file. Without weights, or with weights that are all 1, each is a sample of its
// own, as the samples of a language model are; the same row twice is two
// samples. Otherwise they are one sample, a distribution over labels, in which a
// label counts once with the sum of its weights.
//
// A row that cannot be read is not passed over: the stage does not open, and
// names the line. The answers of the voter are kept in memory: with ids of 12
// characters, 89 bytes for an item with one answer and 16 for each further one.
// More than 5 million are refused.
package recorded
