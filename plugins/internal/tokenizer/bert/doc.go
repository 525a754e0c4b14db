// Package bert cleans and splits texts as BERT's tokenizers do: it is the normalizer
// BertNormalizer and the pre-tokenizer BertPreTokenizer of tokenizer.json, each alone and
// both in one pass.
//
// It follows the tables of the tokenizers library, which are older than today's Unicode;
// about sixty characters that are newer than Go's own tables may get another case, or
// another class, than there. A test compares it with the library over every character.
// It knows no vocabulary.
package bert
