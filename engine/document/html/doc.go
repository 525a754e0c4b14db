// Package html makes Markdown of the text that a web page shows: headings, lists, tables and
// code stay what they are; scripts, styles and what is hidden are left out.
//
// It follows no link and reads no other file. Time and memory are linear in the length of
// the page; elements in elements beyond the parser's limit are an error.
package html
