// Package charsmap rewrites characters by the table that SentencePiece's models carry, the
// normaliser Precompiled of tokenizer.json: that of XLM-RoBERTa, whose table is NFKC with some
// changes of white space.
//
// It gives the same texts as the tokenizers library, which the test data record, also where
// that differs from SentencePiece: a cluster of characters (Unicode's UAX 29) of fewer than six
// bytes becomes what the shortest entry that it begins with becomes, and what follows in the
// cluster is lost. It does not make tables.
package charsmap
