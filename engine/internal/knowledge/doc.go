// Package knowledge opens the knowledge of a block, in step with its source, and
// searches it.
//
// Open starts the stages, builds what is missing, and returns a Knowledge: entries to
// be searched by meaning and by words, the labels with their centroids, random
// examples, and all entries in order. A collection that somebody else makes is attached
// instead, and nothing is built.
//
// The work is divided into rooms:
//
//   - stages: the running stages of a block, and calls to them
//   - units: the rows or documents of a source, compared with what the store holds
//   - enrich: what enrichers add to passages
//   - build: rows -> compare -> chunk -> enrich -> embed -> put -> commit
//   - generation: the builds of a knowledge in its store: names, notes, listing, removal
//   - attached: a collection that somebody else makes: its sample, and whether the embedder fits
//   - centroid: the centroids of labels, made and searched in memory
//
// It starts no process itself, and ranks nothing: stores search, and package fuse of the
// sdk makes one ranking of their legs.
package knowledge
