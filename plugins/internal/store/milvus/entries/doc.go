// Package entries reads the rows of a collection as entries. A collection is racflow's own (Own), or it belongs to
// another program and is attached (Attach). A mapping says which field holds which part of an entry. For an attached
// collection, the file can name fields; the mapping finds the others by their types and usual names. Package entries
// searches, gets and scans; it writes nothing.
//
// # Scores of attached collections
//
// Dense scores are cosines. For COSINE they are the server's own scores. For IP and L2, the server returns twice the
// candidates, and package entries computes their cosines from their vectors. For L2 the query gets the norm that the
// vectors have on average. Where the file says that all vectors have norm 1 (normalized), package entries converts
// the server's scores to cosines, as long as the engine's sample has no vector with another norm (sdk.Search.Norm).
//
// Lexical scores are those of the server's BM25 function. A sparse field that no function fills is not used, because
// the origin of its numbers is unknown.
//
// # Keys
//
// Rows are paged by their keys. A key with control characters, such as a line feed, cannot be written in an
// expression that every server reads. A scan ends with an error at such a key.
package entries
