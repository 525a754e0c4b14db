// Package search reads: the dense and the lexical leg of a search, entries by id,
// and all entries in the order in which they were put. What one call returns is of
// one commit.
//
// A server's order is only nearly right. The words of a row are weighed with the
// average length when it was put, dead rows and those of a writer at work take the
// place of others, and filters are translated to something weaker where engines
// disagree. So a leg reads more rows than wanted, scores them again with today's
// statistics, and knows by a bound on the error whether that was enough; else it
// reads more, has the server leave out what is not of the commit, and at last
// reads every row. Only among entries that tie with the last one of a list of more
// than a hundred the server may choose.
//
// A hybrid search takes three calls: one for each leg, at once, and one for the
// cosines of what the words found, which the scores of package fuse need. Of a small
// collection the third call reads vectors, each once, and is left out when it would
// read none.
//
// The package does not fuse: the scores of a server's own hybrid search differ
// between engines.
package search
