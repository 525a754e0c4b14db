// Package docexpand has a language model write terms for each passage, for the
// enrichers keywords and questions: words or sentences that people may search for who
// want the passage (document expansion).
//
// A request holds a passage, or with pack several of one document, numbered, and the
// document's title, never the document. Of a document batch_size passages are worked on
// at a time. Passages of a pack are of one batch; one that the answer lacks is asked
// about alone.
//
// Models answer in many forms, whatever the prompt asks for, and all of these are read:
// lists with numbers or bullets, lines, commas, JSON; inside a code fence, behind a
// sentence, or truncated. Terms lose quotes and emphasis. Of those that differ only in
// case one is taken, at most n in all, and none that is longer than its kind allows.
//
// The terms of each passage are cached by the request that would ask about it alone,
// and pack. With which passages it was packed does not count, so that a change in a
// document asks about what has changed.
//
// Titles and passages stand between delimiters that they cannot close. A passage that
// misleads the model all the same spoils its own terms, and with pack those of the
// passages beside it. A passage fails alone; retries, limits and budgets are the engine's.
package docexpand
