// Package again decides which answers of an earlier run still hold, for a new run over the same
// input: it takes these, and answers the others anew.
//
// An answer holds where nothing that has changed can affect it. Where the file, what stages work
// with or have learnt, or racflow itself has changed, none does. Where only the knowledge has,
// an item's answer holds if the knowledge has the same labels, and the item gets the same from
// it: each search finds the same candidates with the same labels and scores, and texts where a
// stage reads them, the same centroids of labels, and the same random examples are drawn for its
// prompts. All that stages below see of a knowledge is that, so they would be asked the same
// again. So the searches are done for every item, and nothing else for those whose answers hold. That is
// also done where an attached collection is searched: its owner may have changed it, and nobody says so.
//
// Items that failed, that lack a voter, or that a spending limit left to the free voters are
// answered anew, and so are those that people had decided about.
//
// Runs note what their items got from the knowledge (outcome.Basis). What an answer took was
// paid in the earlier run: it does not count here.
package again
