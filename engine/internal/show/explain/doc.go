// Package explain opens a run and shows how its answers came about, for HTML pages and for the
// command.
//
// A run keeps the results of all items and, for notable items, what the stages saw (package
// journal). It keeps no texts. The package looks up the texts of items in the input, the texts of
// candidates in the searched generation of the knowledge, and replies in the response cache. It has
// the prompts written again, and compares their hashes. If the input, the file or the knowledge
// changed, or if the cache was cleared, Gone lists what is missing; that is no error.
//
// Run.Briefs yields every item with the data of the journal and the input. Run.Items yields the
// wanted items with all details, and looks up their texts in batches, so that one pass covers a
// whole run. The types encode to the JSON for pages.
//
// The package calls no service, builds no knowledge and changes no run. Package eval measures.
package explain
