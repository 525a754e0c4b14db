// Package attached opens a collection that another program maintains, to read it as the knowledge of a
// pipeline. It writes nothing there.
//
// Searches go to the collection itself. Everything that needs more rows than a search returns uses a
// sample: the first maxEntries entries in the store's order, up to maxBytes of texts, metadata and
// vectors. The sample yields labels and their centroids, random examples, and the rows that stages learn
// from. If the store's order depends on labels, as after loading label by label, a partial sample may lack
// labels.
//
//	Attach -> dimension compared         open.go
//	  -> sample: kept, or read           sample.go
//	     pages in a file                 sample.go
//	  -> embedded again and compared     report.go
//	     read, searched for centroids    open.go
//
// The state folder stores a sample for each block and store config: NAME.rows, and NAME.json with the hash
// of NAME.rows. The sample is read again on demand, if the file is broken or has another layout, or if the
// collection has changed: its ID, the fields of its entries, or the number of entries by more than a
// fifth. Another process may replace the file at any time; a process that has the old file open continues
// to read it.
//
// Opening embeds at most Compared entries of the sample again, as passages. It compares the new vectors
// with the collection's own by their mean cosine. Below foreign, another embedder made the collection, and
// opening fails; below alike, opening warns. NAME.compared stores the result for the embedder and the
// sample, so that a later opening embeds nothing. A learning embedder learns from the texts of the sample,
// and NAME.compared stores its state, too.
package attached
