// Package wordpiece is the model WordPiece of tokenizer.json, and of a vocab.txt: it cuts
// words into the longest pieces of a vocabulary, from the left (Wu et al. 2016,
// arXiv:1609.08144).
//
// It reads vocabularies in time and memory bounded by their size, and refuses what no
// trained vocabulary has. It does not split texts into words, and trains nothing.
package wordpiece
