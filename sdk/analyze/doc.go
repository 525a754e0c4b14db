// Package analyze turns a text into the words that the lexical leg of a search
// counts. Knowledge and queries go through the same analyzer, in every store,
// so that the same words meet.
//
// All analyzers read the text in Unicode form NFKC and in lower case: a
// full-width or a ligature letter finds its plain form. A word is a run of
// letters, digits and the marks on them; everything else separates. In all but
// ngram, Chinese characters and Hiragana are a word each.
//
//   - standard takes words as they are: "Re-open tab2" is re, open, tab2.
//   - code takes an identifier, underscores included, whole, and its parts after
//     it where it has several: camelCase, snake_case, digits. "getHTTPServer_v2"
//     is gethttpserver_v2, get, http, server, v, 2. Paths fall into their names.
//   - english takes words by their stems (Porter, 1980) and leaves out some fifty
//     that nearly every text has: "the diseases of cells" is diseas, cell.
//   - danish, dutch, finnish, french, german, hungarian, italian, norwegian,
//     portuguese, russian, spanish and swedish do the same with the stemmers of
//     Snowball 2.0 (Porter, 2001, snowballstem.org): "die Häuser" is haus. Compounds
//     stay whole.
//   - ngram is for languages written without spaces. A run of letters of theirs
//     gives its overlapping pairs, each letter with its marks: 東京都 is 東京, 京都.
//     A letter that stands alone is a word, and everything else is as in standard.
//
// The pairs of ngram are those of Lucene's CJKAnalyzer: runs of Han, Hiragana,
// Katakana, Bopomofo and Hangul, across the borders between them, since a
// Japanese word may have several. They need no dictionary and retrieve about as
// well as words do (Nie, Gao, Zhang and Zhou, "On the use of words and n-grams
// for Chinese information retrieval", IRAL 2000). Thai, Lao, Khmer and Myanmar,
// which have no spaces either, are treated alike. Korean has spaces, but its
// particles are written to the word; the pairs of a word meet with any of them
// (Lee and Ahn, "Using n-grams for Korean text retrieval", SIGIR 1996), and the
// word as a whole would add nothing to those. A query of one such letter finds
// only texts where it stands alone; those who search for single Chinese
// characters take standard.
//
// Standard, code and ngram have no stop words and no stems, and fold no accents.
// What an analyzer makes of a text never changes under the same name, since stored
// knowledge depends on it: another version of the stemmers is another name.
package analyze
