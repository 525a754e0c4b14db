// Package explain opens a run for people who want to know what made its answers: the pages
// that show them, and the command, use it.
//
// A run keeps the results of all its items, and for notable ones what the stages saw
// (package journal). It keeps no texts. The package looks up the texts of items in the
// input, those of candidates in the searched generation of the knowledge, and replies in the
// response cache; it has the prompts written again and compares their hashes. If something is
// no longer there, since the input, the file or the knowledge changed or the cache was cleared,
// Gone says so; that is no error.
//
// Run.Briefs yields every item as the journal and the input have it. Run.Items yields all
// that is known of the wanted items, and looks their texts up a batch at a time: one pass
// covers a whole run. The types encode to the JSON that pages get.
//
// Nothing here calls a service, builds a knowledge, changes a run or measures anything:
// package eval does that.
package explain
