// Package snapshot is what a reader knows of the last commit: which one it is, by the
// turns of writers (turn.go), its record, which says up to which sequence number rows
// count, the note, the statistics of the
// words, and the list of dead rows. It reads them from system rows of the table, and
// a View looks for a newer commit every two seconds. It writes nothing.
package snapshot
