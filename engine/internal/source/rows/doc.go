// Package rows reads rows from the bytes of a file: text in any encoding, CSV and TSV, JSON and JSONL, lines,
// Excel and Parquet. Package source maps their columns.
package rows
