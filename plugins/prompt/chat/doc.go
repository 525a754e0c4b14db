// Package chat writes the prompts of retrieval-augmented classification (RAC):
// a chat whose system message names the labels that are allowed, the likeliest
// first, in which some neighbours of the item are turns that have already been
// answered, and which ends with the item. The answer is a JSON object with the
// label and, before it, where that is wanted, the reasoning that leads to it:
// what a model has written it takes into account (Wei et al., "Chain-of-Thought
// Prompting Elicits Reasoning in Large Language Models", NeurIPS 2022).
//
// With labels = "neighbours" only the labels of the item's candidates are
// allowed, in the order of the nearest candidate of each; so a model chooses
// among few labels even where the knowledge has thousands. With labels = "all"
// the others of the knowledge follow them, sorted. An item without candidates
// is asked with all labels and no turns: zero-shot.
//
// The turns stand from the farthest neighbour to the nearest. They are in the
// form that the answer must have, or the model would follow them rather than
// the system message. Nobody wrote down why they have their labels: their
// reasoning says just that they were labelled by hand, and the system message
// that the model is to write more. Nothing is made up that a model could take
// for reasoning.
//
// max_tokens leaves the farthest turns out, as in package completion.
//
// The system message may be written by a Go text/template of one's own, with
// the fields of Data and the function join.
//
// It asks for the form of the answer; holding the model to it (JSON schema) is
// the sampler's work, and refusing other labels that of the accept rules.
package chat
