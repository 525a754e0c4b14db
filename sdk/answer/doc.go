// Package answer reads the texts of language models: the label in a line of text or in a
// JSON object, or a list of labels there, and optionally the allowed label that is nearest to it; or a text of any
// length that cites numbered passages.
//
// A text that cannot be an answer gives a Reason and no label. A label that is not
// among the allowed ones stays as it was written: accept rules decide about it, so that
// no answer is replaced by a guess. A text that cites a passage which was not given, or
// none at all, is no answer. The package does not check whether the passages support
// what the text claims.
package answer
