// Package build brings a generation in step with its source.
//
// The units of the source are compared with what the store holds, by id and content
// hash, and only what differs is redone: an unchanged file is only read for its digest,
// a changed row is embedded again, a removed row disappears. All changes of one build
// become visible in one commit, but for a first build, which is committed now and then
// between documents, to resume after a kill.
//
//	units.Read -> units.Compare            build.go
//	  -> chunk -> enrich -> batches        chunk.go, package enrich, entries.go, batch.go
//	  -> embed -> put -> commit            put.go
//	     -> label centroids                centroid.go
//
// An embedder that has to learn reads all entries first (fit.go), so that they are cut
// and enriched twice. What services answered is cached, and what failed is remembered:
// a build asks about no passage a second time but for the retries. Texts are forgotten
// once they are stored: no more of them are held than the batches under way have.
//
// A row that ends the process of a store, embedder or chunker, or that hangs, is left out
// alone; one that does so to an enricher is kept without the addition. Its document
// gets a hash that no content has, so that the next build does that document again.
// Where a stage answers nothing of a batch, nor what any stage can answer, no row is to
// blame: the build ends, and what the store holds stays. What an ended first build had
// completed is committed. A process of a store takes with it what was not committed: the
// rows to blame are found by putting them into a collection that is never committed
// (blame.go), and the build begins again without them.
//
// A plan does the same without calling a service and without writing; it counts what
// would be done and asked.
package build
