// Package attached reads a collection that another program makes: an attached
// collection. It takes what the file says of the fields, finds the others by their types and
// usual names, and searches, gets and scans the rows as the entries that mapping.go makes of
// them. It writes nothing: Service has no method for that.
//
// # Scores
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
package attached
