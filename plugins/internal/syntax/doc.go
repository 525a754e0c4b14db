// Package syntax finds the declarations of source code without parsing it.
//
// It reads a file line by line and divides it into units: first at the top level, and inside a unit on request.
//
// In languages with braces a unit begins on a line at the searched bracket depth and ends with the line that ends its
// statement. Where statements have semicolons (C, C++, C#, Java, Rust, PHP, ...) that line ends in ; or }. Elsewhere
// (Go, JavaScript, TypeScript, Kotlin, Swift, Scala, ...) it does not end in an operator or comma, and the next line
// does not continue it. Brackets in comments, strings, characters, raw strings, templates and regular expressions do
// not count. Every branch of an #if begins at the depth of the first branch.
//
// In languages with indentation (Python, YAML, ..., and by their indentation Ruby, Lua, shell, ...) a unit begins on
// a line with the indentation of the first line of its block. Lines inside brackets and strings, and lines such as
// else, except or end, belong to the unit above.
//
// Comments directly above a unit, attributes, annotations and decorators belong to
// it. A comment with an empty line below it is a unit of its own.
//
// A signature is the text of a declaration with a body, up to the body.
//
// Code that does not compile, macros that open brackets, and mixed languages lead to different units, never to an
// error. The run time is linear in the length of the file.
package syntax
