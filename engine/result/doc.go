// Package result defines the result of an item: one type for Go programs, lines of JSON and the
// journal. Package engine returns it; pages, other formats and Python show parts of it.
package result
