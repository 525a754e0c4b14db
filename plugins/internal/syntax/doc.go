// Package syntax finds the declarations of source code without parsing it.
//
// A file is read line by line and divided into units, at the top level first, and
// inside a unit when asked.
//
// In languages with braces a unit begins on a line at the depth of brackets that is
// searched, and ends with the line that ends its statement. Where statements have
// semicolons (C, C++, C#, Java, Rust, PHP, ...) that line ends in ; or }. Elsewhere (Go,
// JavaScript, TypeScript, Kotlin, Swift, Scala, ...) it does not end in an operator
// or comma, and the next line does not continue it. Brackets in comments, strings,
// characters, raw strings, templates and regular expressions do not count; every branch
// of an #if begins at the depth of the first.
//
// In languages with indentation (Python, YAML, ..., and by their indentation Ruby,
// Lua, shell, ...) a unit begins on a line that is indented like the first of its
// block. Lines inside brackets and strings, and those like else, except or end,
// belong to the unit above.
//
// Comments directly above a unit, attributes, annotations and decorators belong to
// it. A comment with an empty line below it is a unit of its own.
//
// A signature is the text of a declaration with a body, up to the body.
//
// Code that does not compile, macros that open brackets, or mixed languages give
// other units, never an error. Reading is linear in the length of the file.
package syntax
