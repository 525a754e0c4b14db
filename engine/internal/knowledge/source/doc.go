// Package source reads rows from files, globs of files and standard input, whatever they are
// written in: how (Form) is found out from a file's name and content, or given.
//
// A row that cannot be used (no text, invalid UTF-8, longer than MaxRow, a quote
// that is never closed) is returned with its Err, and the next row is read. Only a file
// that cannot be read at all ends with an error, a FileError that says what to do.
//
// TSV is plain: fields are split at tabs and nothing is quoted, unless a quote is given.
// CSV follows RFC 4180. The package does not know what rows are used for; how files are
// taken apart is known to the packages below it.
package source
