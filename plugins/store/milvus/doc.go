// Package milvus is the store for knowledge that outgrows one machine: a
// collection of a Milvus server, of Milvus Lite or of Zilliz Cloud. It gives
// the answers of store/local.
//
// Milvus has no transactions, so the package keeps versions. Every entry that
// is put becomes a row of its own with the next sequence number, and no row is
// ever changed. One more row, the record, says up to which number rows count,
// and what else belongs to the last commit: a Commit is the replacement of that one
// row, and searches drop what is not below its number; where that takes too much
// of what a server finds, the server has to leave it out. What a commit
// replaced or deleted is on its list of dead rows, which searches leave out, and
// is removed by a later writer when no reader can need it any more. Rows that a
// killed writer left behind are above the number, and the next writer removes
// them. A reader looks for a newer record every two seconds; what one call of
// Search, Get or Scan returns is of one commit. Writers take turns by a lease; see
// lease.go for what that promises.
//
// Milvus searches words as sparse vectors. A row's has for each of its words
// the part of BM25 that depends on the row, tf / (tf + k1·(1 - b + b·length /
// average length)), a query's the part that depends on the collection, the idf,
// and their inner product is the score. The number of a word is a hash of 32
// bits: in a million different words about one in four thousand shares its
// number with another. How many entries have a word, and how many words there
// are in all, is kept with the record. Since the average length moves with every
// commit, the server's order is only nearly right: more rows than wanted are
// read, scored again with the statistics of today, and by a bound on the error
// it is known whether that was enough. Rows whose average is off by more than a
// quarter are put again by the next commit.
//
// Filters are translated where every engine agrees on their meaning, else to
// something weaker; what comes back is checked, and where too much of it falls
// away the rows are read from end to end. Both sides come back with each other's
// scores, so that package fuse ranks as it does over store/local. Only among
// entries that tie with the last one of a list of more than a hundred the server
// may choose.
//
// A hybrid search takes three calls: one for each side, at once, and one for the
// cosines of what the words found, which the scores of package fuse need. What
// that costs, and what versions cost a load, against a program that does nothing
// but call the SDK, is what this prints, for the rows given, on Milvus Lite:
//
//	RACFLOW_TEST_MILVUS=1 RACFLOW_MILVUS_ROWS=100000 go test -count 5 -v -run AgainstBareClient ./plugins/store/milvus
//
// With Milvus Lite 2.5.1 on two cores and 100,000 rows of 384 dimensions, a load had
// 1.2 to 1.65 times the rate of the bare program, a search of depth 60 took 5 to 12 %
// longer and one of depth 240 21 to 24 %, most of it for the cosines: such a
// server makes one search after the other.
//
// The package does not embed and does not fuse: the scores of a server's own
// hybrid search differ between engines.
package milvus
