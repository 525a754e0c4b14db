// Package pdf reads the text of PDF files. Words and lines are derived from the positions that
// the text operators give them; a form feed separates pages.
//
// Columns of text whose rows a file draws across them are read column by column; tables
// stay in rows.
//
// Forms and rotated text may come out in an odd order; text in pictures does not come out.
// A few hostile bytes can make the reader ask for all memory or never end: call it through
// package apart.
package pdf
