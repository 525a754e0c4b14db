// Package bm25 turns texts into what Milvus searches words with. A row's sparse
// vector has for each of its words the part of BM25 that depends on the row, a
// query's the idf, and their inner product is the score. A word's dimension is a
// hash of 32 bits, so that no dictionary is needed: among a million words about
// one in four thousand shares its dimension with another.
//
// The package knows neither rows nor collections: who calls keeps the statistics.
package bm25
