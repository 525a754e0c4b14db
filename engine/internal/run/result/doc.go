// Package result is what became of an item, as programs get it and as a line of JSONL
// holds it: one type for both, so that neither says less than the other. It writes results
// as JSONL, TSV, CSV or Parquet for programs, compressed or not, and as a table for people,
// which shows less.
//
// JSON has a result whole, with the columns of the input under the key fields. Formats
// without nesting have a column for each thing that is no list, then the columns of the
// input, where one that has the name of a column of racflow's gets the prefix input_.
// Which columns there are, and so what a file begins with, is known before the first result
// (Input). Rows that can be read only once, and do not begin with their columns, have one
// column fields, with JSON.
//
// The work itself knows more of an item (see run.Result). What is a row group, package
// columnar knows.
package result
