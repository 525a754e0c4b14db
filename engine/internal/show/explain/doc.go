// Package explain opens a run for people who want to know what made its answers: pages
// that show them, and the command.
//
// A run keeps the results of all its items, and of notable ones what the stages saw
// (package journal). Texts are not in it, and are looked up again: those of items in the
// input, those of candidates in the generation of the knowledge that was searched, prompts by
// writing them again and comparing hashes, replies in the response cache. What is not
// there any more, since the input, the file or the knowledge changed or the cache was cleared, is
// said in Gone, and is no error.
//
// Briefs has what the journal and the input say of every item. Items has all that is
// known of those that are wanted, and looks their texts up together, a batch at a time: a
// whole run takes one pass. Types have the JSON that pages get.
//
// Nothing here calls a service, builds a knowledge or changes a run, and nothing is measured:
// that is for package eval.
package explain
