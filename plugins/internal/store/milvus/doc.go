// Package milvus is the store for knowledge that outgrows one machine: a
// collection of a Milvus server, of Milvus Lite or of Zilliz Cloud. It gives
// the answers of store/local, although Milvus has no transactions and searches
// words as sparse vectors.
//
// Every entry that is put becomes a row with the next sequence number, and no row is
// ever changed. One more row, the record, says up to which number rows count: a
// commit writes a new one, so that all of it becomes visible at once. Searches
// leave out what is above the number, and the rows that a commit replaced or
// deleted; a later writer removes those, and what a killed writer left behind.
//
// What a collection looks like, after turn 5 committed, turn 6 died, and while turn 7
// is at work:
//
//	sequence  0 ............ 39 | 40 ........ | 2^32+40 ..........
//	entries   [ counts, but    ] [ left by    ] [ being written   ]
//	          [ for the dead   ] [ turn 6: a  ] [ by turn 7       ]
//	          [ rows listed    ] [ gap        ] [                 ]
//
//	system    ~turn-5-record      counts rows to 40, names its blobs
//	rows      ~note-5-0           the caller's note           \
//	          ~statistics-4-0     words, of an earlier commit  > blobs
//	          ~dead-5-0           numbers of dead rows        /
//	          ~turn-7-claim-H     who writes, until when (a lease)
//	          ~turn-7-base        5: what turn 7 begins with
//
// The folders of internal say how, from the bottom up:
//
//	server       the connection, retries, and errors that the SDK passes over
//	bm25         words as sparse vectors
//	row          entries as rows
//	expression   which rows: filters, in the language of the server
//	table        a collection of the server: schema, indexes, calls
//	snapshot     what a reader knows of the last commit
//	transaction  writing, and the commit that makes all of it visible at once
//	search       both legs of a search, scored as store/local does; get and scan
//	column       replies of the server as rows
//	mapping      which field of a foreign collection holds which part of an entry
//	attached     such a collection: searched, got and scanned
//
// This package puts them together as a stage. It does not embed and does not fuse.
//
// What versions and the cosines of a hybrid search cost, against a program that
// does nothing but call the SDK, is what this prints, for the rows given, on Milvus
// Lite:
//
//	RACFLOW_TEST_MILVUS=1 RACFLOW_MILVUS_ROWS=100000 go test -count 5 -v -run AgainstBareClient ./plugins/internal/store/milvus
//
// With Milvus Lite 2.5.1, 100,000 rows of 384 dimensions and two cores of an AMD EPYC
// that other programs kept busy (load 20 to 35), two rounds gave: a load has 0.75 and 0.92
// of the rate of a bare program that sends three batches at a time. A hybrid search for
// 60 candidates takes 1.19 and 1.09 times as long as the two searches of the bare program,
// one for 240 1.30 and 1.36 times. The server spends 1.3 times the processor time on the
// load and 1.26 and 1.17 times on the searches for 240. Opening the collection and the
// first answer take 70 and 63 ms. The cosines are most of what a search costs more; with
// 20,000 rows, where the dense leg takes less, a search for 240 took 1.5 and 1.8 times as
// long.
package milvus
