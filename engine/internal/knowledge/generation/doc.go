// Package generation names the builds of a knowledge that a store holds, lists and
// removes them.
//
// A generation is a collection of entries, with one of label centroids beside it, and
// has one fingerprint, which is part of its name: what the block says of its entries
// and what its stages add to that (package pipeline), and layout. Every built-in
// chunker, enricher and embedder adds a revision, which whoever changes its output
// raises, so that a new version of racflow alone builds nothing again. For a third
// party's that adds nothing, the name, version and sha256 of its plugin stand in:
// another program may give other vectors. Of a script, that is the hash of the script,
// and not of its interpreter or of what it imports. Stores keep the data themselves,
// and are left alone.
//
// What the embedder resolved when it opened (sdk.Resolver) is noted with the generation,
// shown with it, and used again by every later process that works on it, on any machine. So is
// what it settled by the texts of the knowledge (sdk.Fitter), also by the editions.
//
// Another embedder therefore builds another generation and leaves the first one as it
// is: a build that fails or is killed takes nothing away. Once it is complete, a build
// removes what it replaces of the same file, source, enrichers and embedder; List
// finds the others.
//
// A run brings its generation in step with the source in place, and who searches that meanwhile sees it:
// on a server at once, in a folder when its store starts again. A process that searches for long
// therefore searches an edition (edition.go): a generation named by what the source held, too, which
// nobody changes. It notes there that it is served, and does so again every few minutes, so that no
// build and no person removes it, from whichever machine. One that nobody has held for ten minutes goes
// with the next build of an edition.
//
// It builds nothing.
package generation
