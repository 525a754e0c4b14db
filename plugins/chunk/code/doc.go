// Package code cuts source code by its declarations.
//
// A file is read line by line into units: at the top level first, then inside
// what is too large. A unit that fits `size` stays whole, and small ones that
// follow each other are joined up to size. What is larger is cut at the units
// inside it: a class into methods, a method into statements, with the lines above
// its body as the first part. What has no more units is cut at empty lines, lines
// and words.
//
// In languages with braces a unit begins on a line at the depth of brackets where
// it is looked for, and ends with the line that ends its statement. That is a line
// which ends in ; or } where statements have semicolons (C, C++, C#, Java, Rust,
// PHP, ...); elsewhere (Go, JavaScript, TypeScript, Kotlin, Swift, Scala, ...) any
// line that does not end in an operator or comma and is not gone on with by the
// next. Brackets in comments, strings, characters, raw strings, templates and
// regular expressions do not count; of the branches of #if every one begins at the
// depth of the first.
//
// In languages with indentation (Python, YAML, ..., and by their indentation Ruby,
// Lua, shell, ...) a unit begins on a line that is indented as the first of its
// block; lines inside brackets and strings, and those like else, except or end,
// belong to the unit above.
//
// Comments directly above a unit, attributes, annotations and decorators belong to
// it. A comment with an empty line below it is a unit of its own.
//
// A chunk's metadata "declaration" has the signatures of what it is in, from the
// outside to the inside, and those that it holds: "class Cart > void add(Item i);
// void clear()". A signature is the text of a declaration with a body, up to the
// body.
//
// The language is that of the argument `language`, or of the end of the document's
// "path" (or its identity, where it has none); what has no known language is cut
// as recursive does. This is not a parser: code that does not compile, macros that
// open brackets, or mixed languages give other units, never an error, and every
// chunk stays within size. The chunks joined are the document: white space between
// two chunks belongs to the first.
package code
