// Package table reads the rows of Parquet files and of workbooks of Excel, by libraries that
// were made for files of good will. So it looks at a file before it gives it to them, for
// sizes that nobody writes, and turns their panics into errors.
//
// Both formats are read from a file, at any place, and not from a stream. The package does not
// know what columns mean.
package table
