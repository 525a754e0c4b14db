// Package normalizer changes texts as the "normalizer" of a tokenizer.json says, and splits them into words
// as its "pre_tokenizer" says.
//
// Upper and lower case and Unicode's forms come from Go's tables, which differ from those
// of the tokenizers library: its compatibility forms (NFKC, NFKD) leave some 130
// characters of the last years as they are. Tests compare every type with the library over
// texts, and most over every character. A type that the package does not know is refused
// by its name, and so are expressions that Oniguruma reads in another way than package regexp2.
package normalizer
