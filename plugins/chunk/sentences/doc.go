// Package sentences cuts prose into chunks of whole sentences.
//
// A chunk takes up to `sentences` sentences, and no more than `size` tokens; one
// sentence that is longer than that is cut as recursive does. `overlap` sentences
// at the end of a chunk are repeated in the next, as far as they leave room for a
// new one. The rules of what a sentence is are those of package sentence; they
// know abbreviations, decimals, quotes, lists, and the marks of Chinese, Japanese
// and Hindi. An empty line ends a sentence, but not a chunk.
//
// Without overlap the chunks joined are the document: white space between two
// chunks belongs to the first.
package sentences
