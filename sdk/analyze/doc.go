// Package analyze turns a text into the words that the lexical side of a search
// counts. Knowledge and queries go through the same analyzer, in every store,
// so that the same words meet.
//
// Both analyzers read the text in Unicode form NFKC and in lower case: a
// full-width or a ligature letter finds its plain form. A word is a run of
// letters, digits and the marks on them; everything else separates. Chinese
// characters and Hiragana, which are written without spaces, are a word each.
//
//   - standard takes words as they are: "Re-open tab2" is re, open, tab2.
//   - code takes an identifier, underscores included, whole, and its parts after
//     it where it has several: camelCase, snake_case, digits. "getHTTPServer_v2"
//     is gethttpserver_v2, get, http, server, v, 2. Paths fall into their names.
//
// There are no stop words, no stemming and no folding of accents: they depend on
// the language, and the dense side covers most of what they would gain. What an
// analyzer makes of a text never changes under the same name, since stored
// knowledge depends on it.
package analyze
