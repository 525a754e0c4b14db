// Package attached reads a collection that another program makes: an attached
// collection. It finds out how the server measures vectors and whether it searches by
// words, and searches, gets and scans the rows as the entries that mapping.go makes of
// them. It writes nothing: Service has no method for that.
//
// # Scores
//
// Dense scores are cosines. Attach searches with the vector of one of the first rows
// and compares: where the server's scores of a metric can be turned into the
// cosines (COSINE; IP and L2 of vectors with norm 1), they are; by L2 also the
// shortest vector of all is looked at. They are, as long as the engine's sample has no
// vector with another norm (sdk.Search.Norm). Else the server chooses twice the candidates by
// its metric, for a query with the norm that the vectors have on average, and their
// cosines are computed from their vectors.
//
// Lexical scores are those of the server's BM25 function. A sparse field that no
// function fills is not used: nobody knows how its numbers were made.
package attached
