// Package generation names, lists and removes the index versions of a knowledge that a store holds. It
// builds nothing.
//
// A generation is one index version: a collection of entries, and a second collection of label
// centroids. Its name contains a fingerprint of layout, the block's settings for entries, and what its
// stages add to them (package pipeline). Every built-in chunker, enricher and embedder adds a revision,
// which rises when its output changes. So a new version of racflow alone rebuilds nothing. If a third
// party's stage adds nothing, the name, version and sha256 of its plugin replace the revision, since
// another program may make other vectors. For a script, that is the hash of the script alone, not of its
// interpreter or imports. The fingerprint ignores stores: each has its own data.
//
// The generation's note records the values that the embedder resolved when it opened (sdk.Resolver), or
// settled by the texts of the knowledge (sdk.Fitter). They are listed with the generation. Every later
// process that works on the generation or on an edition of it, on any machine, uses them again.
//
// Another embedder therefore builds another generation and leaves the first one as it is: a failed or
// killed build destroys nothing. A complete build removes the generations that it replaces, of the same
// file, source, enrichers and embedder. List finds the others.
//
// A run updates its generation in place from the source. Other processes that search the generation see
// the changes: on a server immediately, in a folder when their store starts again. A process that
// searches for a long time therefore searches an edition (edition.go): a pinned snapshot that never
// changes, and whose name also depends on the content of the source. The process renews a note in the
// edition every few minutes, so that no build and no person, on any machine, removes the edition. The
// next build of an edition removes editions that nobody has held for ten minutes.
package generation
