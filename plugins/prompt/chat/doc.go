// Package chat writes the prompts of retrieval-augmented classification (RAC): a chat whose
// system message lists the allowed labels, the likeliest first, whose turns are some
// neighbours of the item with their labels, and which ends with the item. The answer is a
// JSON object with the label and, optionally before it, the reasoning that leads to it: a
// model takes into account what it has written (Wei et al., "Chain-of-Thought Prompting
// Elicits Reasoning in Large Language Models", NeurIPS 2022).
//
// With labels = "neighbours" only the labels of the item's candidates are allowed, in the
// order of the nearest candidate of each; so a model chooses among few labels even where
// the knowledge has thousands. With labels = "all" those of the knowledge are allowed,
// sorted, and those of the candidates are named behind them. An item without candidates is
// asked with all labels and no turns: zero-shot.
//
// With answer = "list" the answer is a list of labels, the likeliest first, so that the
// next one is there where the accept rules refuse the first; an empty list says that none
// of them fits.
//
// The turns stand from the farthest neighbour to the nearest. They have the form of the
// answer, or the model would follow them rather than the system message. Nobody recorded
// why the neighbours have their labels: the reasoning of their turns says only that they
// were labelled by hand, and the system message asks the model to write more. So no
// reasoning is made up.
//
// What is the same for all items comes first, so that a service that caches the beginning
// of prompts computes it once: the instructions, then all labels of the knowledge where
// all are allowed, and only then the labels of the neighbours, their turns and the item.
//
// max_tokens leaves the farthest turns out, as in package completion.
//
// The template of the system message is a Go text/template with the fields of Data and
// the function join; a file can replace it.
//
// The prompt asks for the form of the answer. Enforcing it (JSON schema) is for the
// sampler, refusing other labels for the accept rules.
package chat
