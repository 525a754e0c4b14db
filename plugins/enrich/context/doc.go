// Package context is an enricher that has a language model contextualize each passage:
// Anthropic, "Introducing Contextual Retrieval", 2024. Some 50 to 100 tokens say which
// document and which part of it the passage is from, and what its words refer to; they
// are embedded and searched with the passage.
//
// A request begins with what is the same for all passages of a document, byte for byte,
// and marked as shared: a system message, and the document with its title. The path of the
// file is shown where the document has no title beside the file's name, or with path = true: a
// document that names itself may be renamed or moved, and nothing is asked again.
// The passage and the instruction come last. The first passage of a document is asked
// about alone, so that the service has the document in its cache for the others, which
// are then asked about together.
//
// A document longer than context_tokens is shown in part: its beginning, and the window
// of a fixed grid in whose middle the passage stands. Windows overlap by half, and many
// neighbouring passages share one, so that requests have their beginning in common
// here, too. Tokens are estimated at four characters.
//
// An answer is at most max_tokens long; a truncated one is used up to its last whole
// sentence. A document that is a single passage is asked about, too: the title or the
// path can name its subject.
//
// Document and passage stand between delimiters that they cannot close, and the prompt
// says that what is there is no instruction. A document that misleads the model all the
// same spoils the contexts of its own passages and nothing else.
//
// The messages are written with system.tmpl and prompt.tmpl, Go text/templates with the
// fields of Data; files named in the config replace them.
//
// Usable answers are cached by their requests. Each of those holds the document, so that a
// change anywhere in a document asks about all its passages again (of a long one, about those
// in the windows that show the change). A passage fails alone. Where three
// passages in turn get no answer, or the document is too long for the model, the others
// that share its beginning are not asked about. Retries, limits and budgets are the
// engine's.
package context
