// Package folder reads what the configuration files in a model's folder say, as
// sentence-transformers lay them out.
//
// What a model does differently from what racflow computes would change its vectors without
// a word. So every such setting that is known is read, and one that is not supported is refused
// with its name and its file. Files are bounded, and no number in them is believed:
// package transformer checks the shapes of the weights against them before it takes
// memory.
//
// The package reads no weights and no tokenizer.
package folder
