// Package decide answers typed questions about a text from what a pipeline's election makes of it: which of these
// options, is it this label, which of these levels. It reads and writes the two forms in which programs ask decision
// models, TypeSafe's (systemone.go) and OpenAI's (decisions.go), which share one Request. All questions of a request share
// one way of the text through the pipeline.
//
// # Probabilities
//
// A Belief has a probability for each label, as the election estimates them; they add up to 1.
// That of the answer is its calibrated confidence. The rest is divided as the election divides it, where it lists its
// labels (the built-in learned, which the server asks for all), and else by the shares of the votes: of labels in a
// tree, of elections that estimate nothing. Without an estimate the confidence is the agreement, which nothing
// calibrates. Where labels are sets, each has a probability of its own, and they do not add up to anything.
//
// # Options that are labels
//
// An option names a label, or a node above labels, by its id or by its name in the labels' table; spellings of one name
// (case, blanks, hyphens) are the same. Its probability is the label's, divided by the sum over the options. What lies
// outside the options goes to an option called none, if the question has one and no label is called so; so does the probability
// that no label fits, which is taken from the labels other than the answer. Without such an option, what lies outside lowers the confidence, which is TypeSafe's (p - 1/n) / (1 - 1/n), at least 0, for n options: p is the probability of
// the likeliest before it was divided. So a text about something else gets a choice, and little confidence. The order of
// the options has no influence; of equally likely ones the first by name is chosen.
//
// A predicate names a label in its instructions, by {"label": NAME} or by nothing but the name, and gets its probability.
// A score has options in the order of its levels, and their mean position.
//
// # Options that are no labels
//
// If no option of a question is a label, the pipeline's embedder compares the text with the options' descriptions, or
// with their names: probabilities are a softmax of 20 times the cosine. That is far weaker than an answer from examples,
// and nothing calibrates it, so its answers say "x_basis": "descriptions". A predicate without a description of the
// contrary is as likely as not at a cosine of 0.3. Without an embedder, or where some options are labels and others not,
// the question is a Mistake that names the labels.
package decide
