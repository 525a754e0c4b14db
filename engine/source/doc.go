// Package source reads rows from TSV, CSV and JSONL files or standard input.
//
// A row that cannot be used (no text, invalid UTF-8, longer than MaxRow, a quote
// that is never closed) is returned with its Err, and the next row is read. Only a file
// that cannot be read at all ends with an error: no header, a column that is
// mapped but missing, an encoding other than UTF-8.
//
// TSV is plain: fields are split at tabs and nothing is quoted. CSV follows
// RFC 4180. The package does not know what rows are used for.
package source
