// Package output writes results (engine/result) as JSONL, TSV, CSV or Parquet for programs, compressed or not, and as a shorter
// table for people.
//
// JSON has a whole result, with the input's columns under the key fields. Formats without nesting
// have the usual columns, then the input's; if one has the name of a racflow column, it gets the prefix
// input_. Each field of a result is a column that can be named. Input knows the columns, and so the beginning of a
// file, before the first result. Rows that can be read only once, and do not begin with their
// columns, have one column fields, with JSON.
//
// A run knows more of an item (see outcome.Result), of which Of makes a result.
package output
