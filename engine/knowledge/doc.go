// Package knowledge keeps a store in step with its source, and searches it.
//
// Open compares the rows of the source with what the store holds, by id and content
// hash, and redoes only what differs: an unchanged file is only read for its digest,
// a changed row is embedded again, a removed row disappears. All changes of one Open
// become visible in one commit.
//
// A source is made of units: rows, or documents of a folder. A unit is one entry
// unless the block has a chunker. Chunks are named after their document and their
// number in it; their hash is that of the document's content with the number of its
// chunks. A document is unchanged if the store has that many of them, all with its
// hash, so that it is recognised without being cut or even looked into, and redone
// where a kill or a refusal left out a part. Commits are made between documents.
// Texts of documents are read when they are cut and forgotten once they are stored:
// no more of them are held than the batches under way have. Of rows that are cut
// only hashes are kept, too, and the file is read a second time; rows that are not
// cut, and standard input, are held.
//
// Between cutting and embedding, enrichers add to the passages of a document:
// context, which says where a passage stands, and terms. Neither touches the text of
// an entry. They go into its context, the source's own first, and the text is
// embedded between them; each enrich block says whether its additions are searched
// by BM25 (if not, they are metadata under its name) and whether they are embedded.
// Enrichers get whole documents, do not see each other's additions, and work at the
// same time; those that call services get one document per call and as many calls as
// their limit lets through. The order of documents is kept: those that are ready
// before their turn wait. Up to four times as many as are worked on are held, fewer
// where their texts are long. A passage whose addition fails alone is stored without
// it and counted; its document gets a hash that no content has, so that the next
// build does that document again. A service that is down, or a budget that is spent,
// ends the build: a first one commits what was complete before, and what was
// answered is not asked again. A plan asks no service; it counts what would be
// asked.
//
// An embedder that has to learn reads all entries first, so that they are cut and
// enriched twice. What services answered is kept, and what failed is remembered: a
// build asks about no passage a second time but for the retries.
//
// A row that ends the process of an embedder or chunker, or that hangs, is left out
// alone (package retry); one that does so to an enricher is kept without the
// addition. Where a stage answers nothing of a batch, no row is to blame: the build
// ends, and what the store holds stays.
//
// A collection belongs to one fingerprint, which is part of its name: what the block
// says of its entries and what its stages add to that (package identity), and layout.
// Every built-in chunker, enricher and embedder adds a revision, which whoever changes
// its output raises, so that a new version of racflow alone builds nothing again. For a
// third party's that adds nothing, the name, version and sha256 of its plugin stand in:
// another program may give other vectors. Of a script, that is the hash of the script,
// and not of its interpreter or of what it imports. Stores keep the data themselves, and
// are left alone.
//
// Another embedder therefore builds another generation and leaves the first
// one as it is: a build that fails or is killed takes nothing away. Once it is
// complete, a build removes what it replaces of the same file, source, enrichers and
// embedder; ListGenerations finds the others.
//
// Beside each collection stands one of label centroids, so that every store can
// serve the nearest centroids without them touching search or BM25 statistics.
//
// The package works on the interfaces of the sdk and starts no process itself.
package knowledge
