// Package attached reads a collection that somebody else makes: an attached
// collection. It finds out which field holds which part of an entry, how the server
// measures vectors and whether it searches by words, and searches, gets and scans
// the rows as entries. It writes nothing: Service has no method for that.
//
// # Where the parts of an entry come from
//
// The id is the primary key; a whole number is written in decimal. The vector is the
// only field of float vectors. Text, label and context are fields, or members of
// JSON fields and of the dynamic field, with usual names; the first rows show which
// members there are. All else that is a string, a number or a bool is metadata: scalar
// fields by their names, members of JSON fields and of the dynamic field by theirs. Where two have
// one name, a scalar field comes first, then JSON fields in the order of the
// schema, then the dynamic field. Members whose names begin with an underscore, which
// frameworks keep their own books in, are left out unless they are named.
//
// In the file, a place is written as the name of a field, as a key of the dynamic
// field, or as a member: metadata["lang"]. NULL is no text, no label, or metadata
// that is missing.
//
// # Scores
//
// Dense scores are cosines. Attach searches with the vector of one of the first rows
// and compares: where the server's scores of a metric can be turned into the
// cosines (COSINE; IP and L2 of vectors with norm 1), they are; by L2 also the shortest
// vector of all is looked at. Else the server
// chooses twice the candidates by its metric, for a query with the norm that the vectors
// have on average, and their cosines are computed from their vectors. Lexical scores are those of the server's BM25 function. A sparse field
// that no function fills is not used: nobody knows how its numbers were made.
//
// # Filters
//
// A filter is translated where engines agree on its meaning, else to something
// weaker, and what comes back is checked. A search then reads more rows, up to 16,384.
package attached
