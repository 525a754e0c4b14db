// Package crossencoder is a reranker: a cross-encoder from a folder, computed on this
// machine's processor. The model reads the item's text and a candidate together and scores
// how well the one answers the other, which neither vectors nor words can.
//
// A candidate is what places it in its document and below that its text; the keywords and
// questions that enrich stages add to it are left out, since models were not trained on
// such lists. Candidates are scored in the order in which the search found them, at most
// top of them. The pairs of all items of a call go to the model together: it packs them
// without padding.
//
// The time that an item takes is bounded in advance: budget is seconds of processor time, and
// the first time that the stage opens it measures how many tokens the model computes in a
// second, of which follows how many tokens an item may cost. The measurement is kept in the
// stage's state folder, and the number is rounded down, reported, resolved (sdk.Resolver) and
// part of the fingerprint: so the same item has the same ranking however busy the machine is,
// and a resumed run keeps to what it began with. The first pair is scored in any case.
//
// Candidates that are not scored keep their order behind those that are. Their score is 0, or
// the lowest one that was computed if that is less.
//
// The package does not compute the model, which is internal/encoder's work, and caches nothing:
// what it would save is counted in seconds of this machine, not in money.
package crossencoder
