// Package stages says what a knowledge needs of its running stages, starts them, and
// calls them with batches of rows: within a stage's timeout, again where that may help,
// and so that one row that spoils a batch fails alone.
//
// It does not know what the rows are, and starts no process itself: whoever implements
// Starter does.
package stages
