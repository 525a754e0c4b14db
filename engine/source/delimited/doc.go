// Package delimited reads rows whose fields are separated by a delimiter: TSV, CSV and
// their many relatives. Fields may be quoted as in RFC 4180, with a quote of any sort.
//
// Package encoding/csv takes one kind of quote, and after a quote that is never closed
// it reads the rest of the file as one field. Here, that costs one row.
//
// The package does not know what columns mean, nor how text is encoded: it gets UTF-8.
package delimited
