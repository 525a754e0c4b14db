// Package tokenizer turns texts into token ids as the tokenizer.json of a model says, or
// the vocab.txt of a BERT model that has no such file.
//
// Models of all kinds must read texts as they did when they were trained, so the package
// follows the tokenizers library step by step: special and added tokens are cut out of the
// text, the rest is normalised and split into words (package normalizer), and
// each word is divided by the model (wordpiece, bpe, unigram); a template puts the special
// tokens around. Tests compare ids with those of the library for tokenizers that it trained. A part that the
// package does not know is refused by its name, and so is a folder whose
// tokenizer_config.json contradicts its tokenizer.json.
//
// Of a long text, 128 bytes are read for each token of the limit. A word of n characters takes n log n steps at most,
// and a regular expression 10 seconds. Files of a model are not trusted: their sizes are bounded, and what no
// trained tokenizer has is an error.
//
// The package does not decode, pad, or return offsets, apart from about those of [Tokenizer.Each], and
// truncates on the right alone.
package tokenizer
