// Package transaction writes: what is put and deleted between two commits, and the
// commit. Milvus has no transactions, so every entry that is put becomes a row with
// the next sequence number, where no reader looks until the record of a commit, which
// is one row, counts it. Rows that a commit replaced or deleted are on its list of dead
// rows. A later writer removes them when no reader can need them any more, and removes
// what a killed writer left behind.
//
// Writers take turns; turn.go says why no two of them commit over each other. A commit,
// with time going down:
//
//	writer                          server                     readers
//	  | read turns ------------------> 5 committed                |
//	  | claim turn 6 ----------------> ~turn-6-claim-H            | see 5
//	  | read turns <------------------ is the claim alone?        |
//	  | base 5 ----------------------> ~turn-6-base               |
//	  | read turns <------------------ still the highest?         |
//	  | remove what nothing needs ---> rows of gaps, old blobs    |
//	  | put entries in batches ------> rows 40, 41, ...           |
//	  | renew the claim every 8 s ---> ~turn-6-claim-H            |
//	  | find rows that are replaced    ...                        |
//	  | note, statistics, dead ------> ~note-6-0, ...             |
//	  | read turns <------------------ still the highest?         |
//	  | record ----------------------> ~turn-6-record             | see 6
//	  | read turns <------------------ still the highest: done    |
//	  | release the claim -----------> ~turn-6-claim-H            |
//
// The tests run many writers and readers by seeded schedules against a server in
// memory, which loses and delays calls; see TestSimulation.
//
// The words of a row are weighed with the average length at that time. The
// average moves with every commit: rows whose average is off by more than a
// quarter are written again by the next commit (reweigh.go).
package transaction
