// Package attached opens a collection that another program makes, to read it as the knowledge of a
// pipeline. It writes nothing there.
//
// Searches go to the collection itself. Everything that needs more rows than a search finds uses a sample:
// the first maxEntries entries in the store's order, up to maxBytes of their texts, metadata and vectors.
// Labels and their centroids, random examples, and the rows that stages learn from come from the sample.
// If the store's order depends on labels, as after a load label by label, a partial sample may lack some.
//
//	Attach -> dimension compared         open.go
//	  -> sample: kept, or read           sample.go
//	     pages in a file                 sample.go
//	  -> embedded again and compared     report.go
//	     read, searched for centroids    open.go
//
// The state folder keeps a sample for each block and config of a store, as NAME.rows and NAME.json, the
// latter with the hash of the former. The sample is read again if the ID of the collection or the fields
// of its entries have changed, if the number of entries has changed by more than a fifth, if its file is
// broken or of another layout, and on demand. Another process may replace the file at any time: a process
// that has it open reads on in the old one.
//
// At most Compared entries of the sample are embedded again as passages. A mean cosine with the
// collection's own vectors below Foreign means that another embedder made those, and opening fails; below
// Alike it is a warning. NAME.compared keeps the outcome for the embedder and the sample, so that a warm
// open embeds nothing. An embedder that learns learns from the texts of the sample, and its state is kept
// there, too.
package attached
