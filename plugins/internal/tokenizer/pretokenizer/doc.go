// Package pretokenizer splits normalised texts into words as the "pre_tokenizer" of a
// tokenizer.json says.
//
// Classes of characters come from Go's tables, which differ from those of the tokenizers
// library for characters of the last years. A type that the package does not know is
// refused by its name.
package pretokenizer
