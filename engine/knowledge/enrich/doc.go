// Package enrich lets the enrichers of a knowledge add to the passages of its
// documents: context, which says where a passage stands, and terms.
//
// Neither touches the text of an entry. They go into its context, the source's own
// first, and the text is embedded between them; each enrich block says whether its
// additions are searched by BM25 (if not, they are metadata under its name) and
// whether they are embedded.
//
// Enrichers get whole documents, do not see each other's additions, and work at the
// same time; those that call services get one document per call and as many calls as
// their limit lets through. The order of documents is kept: those that are ready
// before their turn wait. Up to four times as many as are worked on are held, fewer
// where their texts are long.
//
// Where one asks a service in batches (batch = true), they get up to 50,000 passages or 32 MiB of
// texts together, and four times that is held: the service takes hours for a batch, however
// much it holds. The others get these in parts then.
//
// A passage whose addition fails alone stays unenriched. One build asks
// about it once, however often it comes by. A service that is down, or a budget that is
// spent, ends the build (EndedError).
//
// enricher.go stands for a block, flow.go takes documents through them in groups,
// ask.go asks for the additions of one group, and add.go puts them into entries.
package enrich
