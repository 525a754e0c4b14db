// Package answer reads what a language model wrote: the label in a line of
// text or in a JSON object, and, where that is asked for, the allowed label
// that it means; or a text of any length that cites numbered passages.
//
// What cannot be an answer has a Reason and no label. A label that is not
// among the allowed ones stays as it was written: accept rules decide what
// becomes of it, so that nobody's answer is replaced by a guess. A text that
// cites a passage which was not given, or none at all, is no answer. Whether
// the passages do say what it claims is not looked into.
package answer
