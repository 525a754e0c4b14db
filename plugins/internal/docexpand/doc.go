// Package docexpand is what the enrichers share that have a language model write terms
// for each passage: words or sentences that people may search for who want it.
//
// A request holds a passage, or with pack several of one document, numbered, and
// the document's title; never the document. Of a document batch_size passages are
// worked on at a time. Passages of a pack are of one batch; where the answer lacks
// those of one, that one is asked about alone.
//
// Answers are read as models write them, whatever was asked for: lists with
// numbers or bullets, lines, commas, JSON; with a fence or a sentence before them,
// or cut off. Terms come without quotes and emphasis, once each whatever their
// case, at most n, and none that is longer than a term of its kind can be.
//
// The terms of each passage are kept through sdk.Host by themselves: under
// endpoint, model, what a request for it alone would say, parameters and pack.
// Which passages it was packed with is no part of that, so that a change in a
// document redoes what has changed.
//
// Titles and passages stand between delimiters that they cannot close. A passage
// that misleads the model all the same spoils its own terms, and with pack those of
// the passages beside it. A passage fails alone; retries, limits and budgets are the
// engine's.
package docexpand
