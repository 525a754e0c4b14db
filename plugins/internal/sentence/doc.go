// Package sentence finds where sentences end, by rules:
//
//   - behind . ! ? or … with what closes behind it (quotes, brackets), if white
//     space follows and the next character is not a small letter;
//   - not behind a single capital letter (J. Smith), not behind an abbreviation
//     that a name or a number usually follows (Dr., e.g., Fig., No.), and not
//     behind a number that begins a line (1. First);
//   - behind 。 ！ ？ ． ｡ of Chinese and Japanese, with what closes behind it, and
//     behind the danda of Hindi, whatever follows;
//   - behind an empty line, always. A single line break ends no sentence.
//
// Decimals, versions, domains and 3 p.m. in the middle of a sentence have no
// white space behind the point or a small letter after it. The rules read only
// a few characters around a position, so that finding all sentences takes linear time.
// They are for European and East Asian languages, and err where a sentence ends in an
// abbreviation.
package sentence
