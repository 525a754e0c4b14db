// Package normalizer normalises texts by the "normalizer" of a tokenizer.json, and splits them into words by its
// "pre_tokenizer".
//
// Upper and lower case and Unicode's normalisation forms come from Go's tables, which differ from those of the
// tokenizers library: its compatibility forms (NFKC, NFKD) do not change some 130 recently added characters. Tests
// compare every type with the library on texts, and most types on every character. The package refuses types that it
// does not know, by name, and expressions that Oniguruma reads differently from package regexp2.
package normalizer
