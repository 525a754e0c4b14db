// Package completion writes few-shot prompts that a language model completes
// with a label: RAGE's prompt (Saha, "RAGE: Retrieval Augmented Generation and
// Election for Intent classification using LLMs", 2023).
//
// After an instruction, and the list of labels if it is wanted, come labelled
// examples: first the random ones, then the item's neighbours from the
// farthest to the nearest, so that the most telling example stands next to the
// item. The prompt ends where the model is to write the label, which it does
// up to a newline.
//
// A template of one's own is a Go text/template; what it may use are the
// fields of Data and Shot and the function join:
//
//	{{join .Labels ", "}}
//	{{range .Random}}{{.Text}} -> {{.Label}}
//	{{end}}{{range .Neighbours}}{{.Text}} -> {{.Label}}
//	{{end}}{{.Text}} ->
//
// It neither picks the examples (the engine sends candidates and random
// entries) nor counts tokens.
package completion
