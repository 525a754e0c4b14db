// Package decide answers typed questions about a text: which of these options, is it this label, which of these levels.
// The answers come from a pipeline's election. The package reads and writes two forms for decision models, TypeSafe's
// (systemone.go) and OpenAI's (decisions.go); both become a Request. The text goes through the pipeline only once for
// all questions of a request.
//
// # Probabilities
//
// A Belief has the probability of each label; the probabilities of all labels add up to 1. The probability of the
// answer is its calibrated confidence. If the election lists the probabilities of its labels (the built-in "learned"
// does, and the server asks for all labels), the rest is divided in the same way. Otherwise, for labels in a tree and
// for elections without estimates, the rest is divided by the shares of the votes. Without an estimate, the agreement
// replaces the confidence; it is not calibrated. If an answer is a set of labels, each label has its own probability,
// and the sum has no meaning.
//
// # Options that are labels
//
// An option names a label, or a node above labels, by its id or by its name in the table of labels. Spellings of a name
// that differ in case, blanks or hyphens are equal. The probability of an option is the label's probability, divided by
// the sum over the options. The probability of labels outside the options goes to an option called none, if the
// question has one and no label has this name. The probability that no label fits goes to it, too; it is taken from the
// labels other than the answer. Without such an option, the probability outside the options lowers the confidence. The
// confidence is TypeSafe's: (p - 1/n) / (1 - 1/n), at least 0, for n options, where p is the likeliest option's
// probability before the division. So a text about something else still gets a choice, but with little confidence. The
// order of the options has no influence; among equally likely options, the first by name is chosen.
//
// The instructions of a predicate name a label, as {"label": NAME} or as the name alone; the answer is the label's
// probability. The options of a score are its levels in order; the answer has their mean position.
//
// # Options that are no labels
//
// If no option of a question is a label, the pipeline's embedder compares the text with the options' descriptions, or
// with their names. The probabilities are a softmax of 20 times the cosine. Such answers are far less accurate than
// answers from examples, and not calibrated, so they have "x_basis": "descriptions". A predicate without a description
// of its contrary has a probability of 0.5 at a cosine of 0.3. Without an embedder, or if only some options are labels,
// the question is a Mistake that lists the labels.
package decide
