// Package tokenspan counts the tokens of texts, and cuts texts into spans within a
// number of tokens, for the chunkers.
//
// A document is tokenized once, into a bit for each byte, set where a token begins, with
// a count every 64 bytes. So the tokens of any part are counted in constant time, and
// all chunkers are linear in the length of their documents. A token that a cut would
// divide belongs to the part in which it begins.
//
// The spans of a document, where they do not overlap, follow each other without
// a gap: white space between them belongs to the one before it. Joined they are
// the document, byte for byte.
//
// Tokenizers:
//
//   - words needs nothing and counts the same on every machine: a run of letters
//     and digits is a token for every 6 characters begun, every other character
//     that is not white space is one, and so is each Chinese, Japanese or Korean
//     character;
//   - characters counts the characters that are not white space;
//   - minilm is the WordPiece of that embedder, which must be on the machine.
//     Words above 100 characters, which the embedder does not read, count with
//     every 100 characters of them as a word.
//
// Of formats the package knows Markdown's tables alone, whose header is repeated where one is
// cut: the chunkers decide which parts a document has.
package tokenspan
