// Package tokenizer converts texts into token ids. It reads the tokenizer.json of a model, or the vocab.txt of a BERT
// model without that file.
//
// A model must get the same ids as in its training, so the package follows the tokenizers library step by step. It
// cuts special and added tokens out of the text, normalises the rest and splits it into words (package normalizer).
// The model (wordpiece, bpe or unigram) divides each word, and a template adds the special tokens. Tests compare ids
// with the library's for tokenizers that the library trained. The package refuses parts that it does not know, by
// name, and folders whose tokenizer_config.json contradicts their tokenizer.json.
//
// The package reads 128 bytes of a long text for each token of the limit. A word of n characters takes n log n steps
// at most, and a regular expression 10 seconds. Model files are not trusted: their sizes are bounded, and anything
// that no trained tokenizer has is an error.
//
// The package does not decode or pad. It truncates only on the right, and returns no offsets except the approximate
// ones of [Tokenizer.Each].
package tokenizer
