// Package segment holds segments: some rows with every index over them. The indexes are a hash table of ids, vectors
// and their int8 codes, inverted lists of words, labels and metadata. The package reads a segment from an image
// without copying, and builds a new segment from drafts and other segments. A segment never changes; a [Snapshot]
// records which of its rows were removed. The package also has the log, to which new rows go first. It does not
// search.
package segment
