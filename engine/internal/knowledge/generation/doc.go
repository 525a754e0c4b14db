// Package generation names, lists and removes the builds of a knowledge that a store holds. It builds
// nothing.
//
// A generation is a collection of entries, with a second one of label centroids. Its name contains a
// fingerprint of layout, the block's settings for entries, and what its stages add to them (package
// pipeline). Every built-in chunker, enricher and embedder adds a revision, which rises when its output
// changes, so that a new version of racflow alone rebuilds nothing. For a third party's stage that adds
// nothing, the name, version and sha256 of its plugin stand in: another program may make other vectors.
// For a script, that is the hash of the script alone, not of its interpreter or imports. The fingerprint
// ignores stores, since they keep the data themselves.
//
// The generation's note records the values that the embedder resolved when it opened (sdk.Resolver), or
// settled by the texts of the knowledge (sdk.Fitter). They are shown with the generation. Every later
// process that works on it or on an edition of it, on any machine, uses them again.
//
// Another embedder therefore builds another generation and leaves the first one as it is: a build that
// fails or is killed destroys nothing. A complete build removes the generations that it replaces of the
// same file, source, enrichers and embedder; List finds the others.
//
// A run brings its generation in step with the source in place. Other processes that search it see the
// changes: on a server at once, in a folder when their store starts again. A process that searches for a
// long time therefore searches an edition (edition.go): a generation that never changes, and whose name
// also depends on the content of the source. The process renews a note in it every few minutes, so that
// no build and no person, on any machine, removes the edition. An edition that nobody has held for ten
// minutes goes with the next build of an edition.
package generation
