// Package path is an enricher without a model: it says where a passage stands,
// from what is known of its document.
//
// A context is a line of the parts that are asked for, as far as there are any, in
// their order: what the document's metadata says (its repository, path, title),
// the headings above the passage and the declarations around its first line:
//
//	acme/shop / src/main/Cart.java / class Cart > void add(Item i)
//
// Headings and declarations are those that the chunker knows; where it does not,
// as with chunks that were cut by length alone, they are found in the document's
// text. Headings are looked for in Markdown, HTML and texts of no known format,
// declarations in source code whose language the end of the path tells.
//
// With names = "words" names in the metadata, which have no white space, are taken
// apart: "src/UpdateChecker.java" becomes "src Update Checker java". That is for
// analyzers which do not know the parts of names. The analyzer code does, and the
// embedder minilm finds less with it: a name that a query has, too, is lost.
//
// A part that another one begins or ends with, such as a title that is the first
// heading, is not said again.
package path
