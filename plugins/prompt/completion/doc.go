// Package completion writes few-shot prompts that a language model completes
// with a label, after RAGE (Saha, "RAGE - Retrieval Augmented Generation and Election
// Algorithm for Few-shot Intent Classification", 2023).
//
// After an instruction, and optionally the list of labels, come labelled examples: first
// the random ones (the paper's l; here the argument random), then the item's k nearest
// neighbours from the farthest to the nearest, so that the most similar example stands
// next to the item. The prompt ends where the model writes the label, up to a newline.
// The paper's prompt is the examples alone, under other names; pipelines/rage.tmpl is a
// template for it.
//
// The argument redraw says when the random examples are drawn anew:
//
//	item    for each item: its samples share one prompt
//	sample  for each sample, as in Algorithm 1 of the paper: an item has as
//	        many prompts as a model below is asked for samples
//	run     never: all prompts begin with the same examples, so that a server
//	        that caches prefixes computes theirs once
//
// The draw depends on the item's id, or its text where it has none, the seed and the
// knowledge alone. An entry that is added to the knowledge, changed or removed changes
// those prompts alone that show it, or showed it: all others are answered from the cache.
// With redraw = "sample" no example is drawn twice for an item as long as the
// knowledge has enough.
//
// max_tokens keeps a prompt within a budget: first the farthest neighbours are
// left out, then the last of the random examples. Tokens are estimated, at four
// characters each; leave room where the texts are not English.
//
// A file can replace the template: a Go text/template with the fields of Data and of
// fewshot.Example (Text and Label) and the function join:
//
//	{{join .Labels ", "}}
//	{{range .Random}}{{.Text}} -> {{.Label}}
//	{{end}}{{range .Neighbours}}{{.Text}} -> {{.Label}}
//	{{end}}{{.Text}} ->
//
// The package does not choose the examples: the engine sends candidates and random
// entries.
package completion
