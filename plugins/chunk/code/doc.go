// Package code cuts source code by its declarations.
//
// A file is read into units, as plugins/internal/syntax tells them: at the top
// level first, then inside what is too large. A unit that fits `size` stays whole,
// and small ones that follow each other are joined up to size. What is larger is
// cut at the units inside it: a class into methods, a method into statements, with
// the lines above its body as the first part. What has no more units is cut at
// empty lines, lines and words.
//
// A chunk's metadata "declaration" has the signatures of what it is in, from the
// outside to the inside, and those that it holds: "class Cart > void add(Item i);
// void clear()".
//
// The language is that of the argument `language`, or of the end of the document's
// "path" (or its identity, where it has none); what has no known language is cut
// as recursive does. Every chunk stays within size. The chunks joined are the
// document: white space between two chunks belongs to the first.
package code
