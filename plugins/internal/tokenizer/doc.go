// Package tokenizer turns texts into token ids as the tokenizer.json of a model says, or
// the vocab.txt of a BERT model that has no such file.
//
// Models of all kinds must read texts as they did when they were trained, so the package
// follows the tokenizers library step by step: special and added tokens are cut out of the
// text, the rest is normalised (package normalizer), split into words (pretokenizer), and
// each word is divided by the model (wordpiece, bpe, unigram); a template puts the special
// tokens around. BERT's normaliser and splitter run in one pass (package normalizer). Tests
// compare ids with those of the library for tokenizers that it trained. A part that the
// package does not know is refused by its name, and so is a folder whose
// tokenizer_config.json contradicts its tokenizer.json.
//
// A long text is read in blocks and no further than the limit, where the words of blocks
// are those of the text: where the pre-tokenizer cuts before every space. All work is
// linear in what is read. Files of a model are not trusted: their sizes are bounded, and
// what no trained tokenizer has is an error.
//
// The package does not decode, pad, or return offsets, apart from [Tokenizer.Each], and
// truncates on the right alone.
package tokenizer
