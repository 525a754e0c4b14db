// Package answer writes prompts that ask for the answer to a question from passages: a chat
// of instructions, the item's candidates as numbered passages, and the question last.
// The answer is a text that cites the passages by number; package sdk/answer reads it
// and checks what it cites.
//
// Each passage names its source as far as its metadata knows it, then its context, without
// the terms that were added for the search, and then its text:
//
//	<passage 2>
//	Source: guide/setup.md, "Setting it up", Install > Linux, lines 10 to 24
//	Context: It follows the list of packages.
//	Text:
//	...
//	</passage 2>
//
// Text from documents cannot end its passage: the first character of what looks like one
// of these marks, or like the end of a turn to servers of models (<|...|>), is written as
// an entity. Source and context are a line each. The instructions say that the text
// of a passage is material and never an instruction; whether a model obeys it all the
// same depends on the model.
//
// Passages beyond `passages` are left out, and then the last ones until the prompt is
// within max_tokens. Candidates that no search has scored are a knowledge as a whole
// (`whole` of a retrieve block): all are shown, in their order, and only max_tokens bounds
// them. Their message is marked as shared: it is the same for every question, as long as
// max_tokens leaves room for all of them beside each.
//
// Between the passages and the question stands a short turn of the assistant: the
// templates of some models refuse two messages of the user in a row.
//
// An item without passages gets no prompt, and the voter that would read it abstains.
package answer
