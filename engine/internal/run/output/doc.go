// Package output writes results (engine/result) as JSONL, TSV, CSV or Parquet for programs, compressed or not, and as a shorter
// table for people.
//
// JSON has a whole result, with the input's columns under the key fields. Formats without nesting have the usual
// columns, then the input's; an input column with the name of a racflow column gets the prefix input_. Each field
// of a result is a column that can be named. Input knows the columns before the first result, so that the header
// of a file can be written. If rows can be read only once and have no header, their columns are unknown: the
// output has one column fields, with JSON.
//
// A run knows more about an item (outcome.Result); Of converts this to a result.
package output
