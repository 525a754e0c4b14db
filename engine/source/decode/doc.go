// Package decode turns the bytes of a file into UTF-8 text: it unpacks gzip and zstd in
// bounded memory, finds out or is given in which encoding the text is written, and knows
// files that hold no text by how they begin.
//
// It does not know what the text means.
package decode
