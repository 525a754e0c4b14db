// Package unigram is SentencePiece's unigram language model (Kudo 2018, arXiv:1804.10959) as
// tokenizer.json describes it: the model of XLM-RoBERTa and of multilingual E5.
//
// It turns one word into ids by the best sum of scores (Viterbi 1967), the ids that the tokenizers
// library gives with the same file, as the test data record. Transformers 5 reads
// the scores itself for some models, and their last bits differ from what that library reads:
// runs of one character may be cut in another order there. Normalisers and pre-tokenizers come
// before. The package does not train, does not sample, and does not turn ids into text.
package unigram
