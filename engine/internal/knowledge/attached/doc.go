// Package attached opens a collection that another program makes, to be read as the knowledge of
// a pipeline. It writes nothing there.
//
// Searches go to the collection itself. What needs more rows than a search finds comes from a
// sample: the first MaxEntries entries in the store's order, and at most MaxBytes of their texts,
// metadata and vectors. The labels and their centroids, random examples, and the rows that
// stages learn from are those of the sample. Where the order has to do with the
// labels, as it has after a load label by label, a sample that is not all of the collection may lack some.
//
//	Attach -> dimension compared         open.go
//	  -> sample: kept, or read           sample.go
//	     pages in a file                 sample.go
//	  -> embedded again and compared     report.go
//	     read, searched for centroids    open.go
//
// The sample is kept in the state folder: one for each block and config of a store, as NAME.rows and
// NAME.json, the latter with the hash of the former. It is read again where the ID of the
// collection or the fields of its entries are others, where the number of entries has moved by more than a
// fifth, and when somebody asks for it. A file that is broken, or of another layout, is read
// again, too. Another process may replace it at any time: who has it open reads on in the old one.
//
// Compared entries of the sample are embedded again as passages. Where the mean cosine with
// the collection's own vectors is below Foreign, another embedder has made those, and opening fails;
// below Alike it is a warning. The outcome is kept in NAME.compared, for the embedder
// and the sample that it holds of, so that a warm open embeds nothing. An embedder that learns
// learns from the texts of the sample, and what it has learnt is kept there, too.
package attached
