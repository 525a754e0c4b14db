// Package answer reads the texts of language models: the label in a line of text or in a
// JSON object, or a list of labels there, and optionally the allowed label that is nearest to it; or a text of any
// length that cites numbered passages.
//
// Models do not write labels as they are asked to. Where a prompt says which labels are allowed,
// a text is read as people would read it:
//
//	**label**, `label`, ## label, - label, "label".    without markup, quotes, full stop
//	Invoice Request, invoice-request                   case and separators
//	Label: x, Answer - x, the label is x.              without prefix
//	``` fences, <answer>x</answer>, a list of one      from a fence, an element, a list
//	{"Label": "x"}, {"intent": "x"}, a tool call       from another property, a tool call
//	JSON for a line, a line for JSON                   from JSON, from text
//
// What a model thought aloud is no part of its answer, under any of the usual tags, closed or
// not, nor is what open-weight models write in channels but the final one. How a label was
// read, if not letter by letter, is in the answer's Reading.
//
// Nothing is read that may mean something else: two labels, one that is denied, struck out or
// part of a longer word, a question, a text whose letters only look like those of a label.
// A prefix counts only where no other label stands in the whole text. Letters stay in their
// script; wide and composed forms of a letter are one with the usual ones, and other
// compatibility forms (a², 𝐚) are not.
//
// A text that cannot be an answer gives a Reason and no label. A label that is not
// among the allowed ones stays as it was written: accept rules decide about it, so that
// no answer is replaced by a guess. A text that cites a passage which was not given, or
// none at all, is no answer. The package does not check whether the passages support
// what the text claims.
package answer
