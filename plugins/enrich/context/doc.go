// Package context is an enricher that has a language model situate each passage in
// its document: Anthropic, "Introducing Contextual Retrieval", 2024. Some 50 to 100
// tokens say which document and which part of it the passage is from, and what its
// words refer to; they are embedded and searched with it.
//
// A request begins with the document, which is the same for all of its passages,
// byte for byte: a system message, the document with its title and path, and a word
// of the model's. These are marked as shared. The passage and what is wanted come
// last. The first passage of a document is asked about alone, so that the service
// has the document in its cache when the others come, which then go together.
//
// A document that is longer than context_tokens is shown in part: its beginning, and
// the window of a fixed grid in whose middle the passage stands. Windows overlap by
// half, and many neighbouring passages have the same one, so that requests have
// their beginning in common here, too. Tokens are estimated at four characters.
//
// An answer is at most max_tokens long; one that this cut is used up to its last
// whole sentence. A document that is a single passage is asked about, too: its note
// can name the subject, by the title and the path.
//
// Document and passage stand between delimiters that they cannot close, and the
// prompt says that what is there is no instruction. A document that misleads the
// model all the same spoils the contexts of its own passages and nothing else.
//
// What the model is told stands in system.tmpl and prompt.tmpl. Files of one's own
// may replace them, Go text/templates with the fields of Data.
//
// Answers are kept through sdk.Host under endpoint, model, messages and parameters;
// those that cannot be used are not. A passage fails alone. Where three passages in
// turn get no answer, or the document is too long for the model, the others that
// begin alike are not asked about. Retries, limits and budgets are the engine's.
package context
