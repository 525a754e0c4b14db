// Package wordpiece is the tokenizer of BERT's uncased models: the embedder
// minilm makes its input with it, and chunkers count with it what that embedder
// will read.
//
// It follows the tables of the original, which are older than today's Unicode;
// about sixty characters that are newer than Go's own tables may come out in
// another case, or as another class, than in the original. It is compared with
// the original over every character, and over the texts that are hard for a
// tokenizer, as recorded in the test data of minilm. It does not train
// vocabularies, and knows no other kind of tokenizer.
package wordpiece
