// Package answer writes prompts that have a question answered from passages: a
// chat of instructions, the item's candidates as numbered passages, and the
// question last. The answer is a text that cites the passages by number; reading
// it and checking what it cites is package sdk/answer.
//
// Each passage names its source as far as its metadata knows it, then what
// situates it (the situating part of the entry's context; the terms that were
// added for the search are never shown), and then its text:
//
//	<passage 2>
//	Source: guide/setup.md, "Setting it up", Install > Linux, lines 10 to 24
//	Context: It follows the list of packages.
//	Text:
//	...
//	</passage 2>
//
// Text from documents cannot end its passage: where it holds what begins one of
// these marks, or what servers of models take for the end of a turn (<|...|>), its
// first character is written as an entity. Source and context are a line each. The instructions say that
// what stands in a passage is material and never an instruction. That keeps a
// text in its place; whether a model then heeds what it reads there is up to the
// model.
//
// Passages beyond `passages` are left out, and from the last one on those beyond
// max_tokens. Candidates that no side of a search has scored are a knowledge as a
// whole (`whole` of a retrieve block): all of them are shown, in their order, and
// only max_tokens bounds them. Their message is marked as shared: it is the same for
// every question, as long as max_tokens leaves room for all of them beside each.
//
// Between the passages and the question stands a short turn of the assistant: the
// templates of some models refuse two messages of the user in a row.
//
// An item without passages gets no prompt, and the voter that would read it
// abstains.
package answer
