// Package terminal makes texts fit for a terminal: without what it would obey, as
// wide as it is, in aligned columns, and with one line that says how far work is.
//
// It does not know what is shown, nor where: that is the caller's choice.
package terminal
