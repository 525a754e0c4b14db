// Package wordpiece is the tokenizer of BERT's uncased models, for the embedder minilm, and
// for chunkers that count the tokens which that embedder will read.
//
// It follows the tables of the original, which are older than today's Unicode; about
// sixty characters that are newer than Go's own tables may get another case, or another
// class, than in the original. Tests compare it with the original over every character
// and over difficult texts, as recorded in the test data of minilm. It does not train
// vocabularies, and knows no other kind of tokenizer.
package wordpiece
