// Package hashing is an embedder without a model: hashed TF-IDF vectors of
// words, word bigrams and character n-grams.
//
// It is clearly weaker than a sentence encoder such as minilm: it knows that
// two texts share words and parts of words, not that they mean the same. On
// CLINC150's public test rows with 15 paraphrased examples for each of 150
// labels the nearest centroid is right on 70 % of them, and on 86 % with
// MiniLM. It is for machines that cannot have a model file.
//
// The vector of a text has in dimension hash(f) mod d the sum, over the text's
// features f that fall there, of
//
//	sign(f) * weight(f) * sqrt(tf(f)) * idf(f)    idf(f) = 1 + ln((N+1) / (df(f)+1))
//
// divided by the vector's norm, with weight 1 for words and 0.5 for bigrams and for
// n-grams of 3 to 5 characters of a word with its borders. Hashing
// with signs is Weinberger et al., "Feature hashing for large scale multitask
// learning", 2009; the smoothed idf is scikit-learn's; the square root of the
// term frequency is Lucene's classic one. Words are those of package analyze.
//
// Document frequencies are learnt from the knowledge, in 32,768 buckets of one
// byte each; before that idf is 1. A vector is computed with correctly rounded
// operations in a fixed order, so that the same text and state give the same bits on
// every machine.
package hashing
