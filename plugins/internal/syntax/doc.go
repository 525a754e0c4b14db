// Package syntax finds the declarations of source code without parsing it.
//
// A file is read line by line into units: at the top level first, then inside
// one where that is asked for.
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
// A signature is the text of a declaration with a body, up to the body.
//
// Code that does not compile, macros that open brackets, or mixed languages give
// other units, never an error. All of it is linear in the length of the file.
package syntax
