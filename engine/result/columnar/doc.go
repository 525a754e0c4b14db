// Package columnar writes rows as Apache Parquet, and counts the rows of such a file.
//
// Rows are gathered into row groups, so memory does not grow with the file. The footer is
// written last: what a process leaves that ends before Close is no Parquet file, and nobody
// takes it for one.
//
// The package knows columns and values. What they mean is package result's.
package columnar
