// Package transaction writes: what is put and deleted between two commits, and the
// commit. Milvus has no transactions, so every entry that is put becomes a row with
// the next sequence number, above what the last record says, where no reader looks;
// the commit replaces the record, which is one row. Rows that a commit replaced or
// deleted are on its list of dead rows. A later writer removes them when no reader
// can need them any more, and removes what a killed writer left behind.
//
// Writers take turns by a lease; lease.go says what that promises.
//
// The words of a row are weighed with the average length at that time. The
// average moves with every commit: rows whose average is off by more than a
// quarter are written again by the next commit (reweigh.go).
package transaction
