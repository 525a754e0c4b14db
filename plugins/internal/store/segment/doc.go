// Package segment is some rows with every index over them: a hash table of ids, vectors
// and their int8 codes, inverted lists of words, labels and metadata. It reads them from
// an image without copying and builds a new segment of drafts and of other segments. A
// segment never changes; which of its rows were removed is kept beside it, in a [Snapshot].
// The package also has the log in which new rows are first. It does not search.
package segment
