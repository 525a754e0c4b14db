// Package source reads rows from files, globs of files and standard input in any supported form
// (Form). The form is given, or detected from a file's name and content.
//
// Reading continues after an unusable row (no text, invalid UTF-8, longer than MaxRow, an unclosed
// quote): the row is returned with its Err. Only a file that is unreadable as a whole ends with an
// error, a FileError that says what to do.
//
// TSV is plain: tabs separate fields, and nothing is quoted unless a quote character is given. CSV
// follows RFC 4180. The package does not know what the rows are for; the packages below it parse
// the files.
package source
