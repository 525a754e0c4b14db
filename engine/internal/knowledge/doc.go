// Package knowledge updates the knowledge of a block from its source, and searches it.
//
// Open starts the stages, builds what is missing, and returns a Knowledge. A Knowledge has entries to search by
// meaning and by words, labels with their centroids, random examples, and all entries in order. Open builds nothing
// for a collection that another program maintains, but attaches it.
//
// build.go updates an index version from its source: rows -> compare -> chunk -> enrich -> embed -> put -> commit.
// Packages below:
//
//   - generation: the index versions of a knowledge in its store, and the running stages of a block; it compares
//     a source's rows or documents with the store; the centroids of labels
//   - attached: a collection that another program maintains: its sample, and whether the embedder fits
//   - cache: stored answers and vectors
//   - reviewed: decisions of people
//
// The package starts no process itself, and ranks nothing. Stores search, and the sdk's package support merges the
// dense and the lexical results into one ranking.
package knowledge
