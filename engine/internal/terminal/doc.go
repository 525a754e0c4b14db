// Package terminal formats texts for a terminal: without control characters, as wide as the terminal,
// in aligned columns, and with one line of progress.
//
// It does not know what the texts mean. The caller chooses where they go.
package terminal
