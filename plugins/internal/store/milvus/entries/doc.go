// Package entries reads the rows of a collection as entries: racflow's own (Own), and those
// that another program makes, which are attached (Attach). A mapping says which field holds which part
// of an entry. That of an attached collection takes what the file says of the fields, and finds the others by
// their types and usual names. Package entries searches, gets and scans; it writes nothing.
//
// # Scores of attached collections
//
// Dense scores are cosines. COSINE is the server's own. By IP and L2 the server chooses
// twice the candidates, by L2 for a query with the norm that the vectors have on
// average, and their cosines are computed from their vectors. Where the file says that
// all vectors have norm 1 (normalized), the server's scores are turned into cosines, as long as
// the engine's sample has no vector with another norm (sdk.Search.Norm).
//
// Lexical scores are those of the server's BM25 function. A sparse field that no
// function fills is not used: nobody knows how its numbers were made.
//
// # Keys
//
// Rows are paged by their keys. A text with control characters, such as a line feed,
// cannot be written in an expression that every server reads: a scan ends there with an error.
package entries
