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
//	system    ~turn-5-record      counts rows to 40
//	rows      ~state-5-0          the caller's note, words, and numbers of dead rows
//	          ~turn-7-claim-H     who writes, until when (a lease)
//	          ~turn-7-base        5: what turn 7 begins with
//
// From the bottom up:
//
//	table      a collection of the server: the connection, retries, schema, indexes, rows, words
//	           as sparse vectors, the expressions that select rows, and what searches in racflow's
//	           collections and in those of other programs have in common
//	snapshot   what a reader knows of the last commit
//	commit     writing, and the commit that makes all of it visible at once
//	search     both legs of a search, scored as store/local does
//	scan       entries by their ids, and all of them
//	attached   a collection that another program makes: searched, got and scanned
//
// This package puts them together as a stage. It does not embed. It fuses the legs as the SDK
// does, because it then asks for cosines and texts of those entries only that are kept: of
// scifact and RAGE, with 240 candidates for each leg and 60 kept, the words find 152 entries of a
// query whose cosines the vectors do not give. The weighted fusion needs 29 of them, the one by ranks 4.
//
// What that costs against a program that does nothing but call the SDK is what this
// prints, for the rows given, on Milvus Lite:
//
//	RACFLOW_TEST_MILVUS=1 RACFLOW_MILVUS_ROWS=20000 go test -count 3 -v -run AgainstBareClient ./plugins/internal/store/milvus
//
// Its words and vectors have nothing to do with each other, so that nearly all cosines are needed.
package milvus
