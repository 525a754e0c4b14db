// Package markdown cuts Markdown by its headings.
//
// A section is a heading with what follows, up to the next heading of any level;
// its path is its own heading below those it belongs to, and becomes the chunk's
// metadata "headings": "Guide > Install > Linux". What stands before the first
// heading, front matter included, goes with the first section.
//
// A section that fits `size` stays whole. Small ones that follow each other are
// joined up to size: a section with those below it, or sections below the same
// heading; the chunk's path is then that of the one which all belong to.
// A section that is too long is cut between its blocks, its heading with the
// first of them. Tables, fenced and indented code, lists, quotes and paragraphs
// are blocks, which are cut only where one alone is larger than size: at lines if
// it is a table, code or list, otherwise as recursive does. A chunk that begins in the
// rows of a table repeats the table's header (sdk.Chunk.Header), which counts towards
// its size, unless that is more than half of it.
//
// What headings, blocks and front matter are, sdk/section says.
//
// Source code among the documents (by its metadata "format") has no headings, and is
// cut as recursive does.
//
// The chunks joined are the document: white space between two chunks belongs to
// the first.
package markdown
