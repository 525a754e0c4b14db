// Package bpe is the model of byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909) as
// tokenizer.json describes it: the model of RoBERTa, of ModernBERT and of SentencePiece's BPE.
//
// It turns one word into ids and gives the same ids as the tokenizers library, which the test
// data record. What a word is, and how its characters are written (the bytes of byte-level BPE
// among them), is decided before, by normalisers and pre-tokenizers. It does not train, does not
// turn ids into text, and refuses dropout, which makes ids a matter of chance.
package bpe
