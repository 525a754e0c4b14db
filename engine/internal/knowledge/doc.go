// Package knowledge brings the knowledge of a block in step with its source, and searches it.
//
// Open starts the stages, builds what is missing, and returns a Knowledge: entries to search by meaning and
// by words, labels with their centroids, random examples, and all entries in order. For a collection that
// another program makes, it builds nothing: it attaches it.
//
// build.go brings a generation in step with its source: rows -> compare -> chunk -> enrich -> embed -> put -> commit.
// Packages below:
//
//   - source, rows, document: rows and documents of files, with their places
//   - generation: the builds of a knowledge in its store, and the running stages of a block; it compares a
//     source's rows or documents with the store; the centroids of labels
//   - attached: a collection that another program makes: its sample, and whether the embedder fits
//   - cache: answers and vectors that need not be made twice
//   - reviewed: decisions of people
//
// The package starts no process itself, and ranks nothing: stores search, and package support of the sdk
// merges the dense and the lexical results into one ranking.
package knowledge
