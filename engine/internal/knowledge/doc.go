// Package knowledge opens the knowledge of a block, in step with its source, and
// searches it.
//
// Open starts the stages, builds what is missing, and returns a Knowledge: entries to
// be searched by meaning and by words, the labels with their centroids, random
// examples, and all entries in order. A collection that another program makes is attached
// instead, and nothing is built.
//
// build.go brings a generation in step with its source: rows -> compare -> chunk -> enrich -> embed -> put -> commit.
// Packages below:
//
//   - source, rows, document: rows and documents of files, with their places
//   - generation: the builds of a knowledge in its store, and the running stages of a block; the rows or documents of a
//     source, compared with what the store holds; the centroids of labels
//   - attached: a collection that another program makes: its sample, and whether the embedder fits
//   - cache: what need not be made twice
//   - reviewed: decisions of people
//
// It starts no process itself, and ranks nothing: stores search, and package support of the
// sdk makes one ranking of their legs.
package knowledge
