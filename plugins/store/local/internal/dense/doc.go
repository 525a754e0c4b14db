// Package dense is the dense leg of a search: the rows of highest cosine, exactly. A scan
// of int8 codes rules out most rows by an error bound, and the vectors decide the rest; the
// result is that of comparing the query with every vector.
package dense
