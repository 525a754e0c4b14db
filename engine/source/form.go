package source

import (
	"cmp"
	"path/filepath"
	"strings"
)

// Format is how rows are written in a file.
type Format string

// The formats.
const (
	TSV     Format = "tsv"
	CSV     Format = "csv"
	JSONL   Format = "jsonl"
	JSON    Format = "json"    // an array of rows, alone or in an object
	Parquet Format = "parquet" //
	XLSX    Format = "xlsx"    // a workbook of Excel
)

// Form says how the rows of a file are written. What is zero is found out from the file's
// name and content.
type Form struct {
	Format    Format `json:"format,omitempty"`
	Delimiter string `json:"delimiter,omitempty"` // between the fields of TSV and CSV: one character
	Quote     string `json:"quote,omitempty"`     // around fields of TSV and CSV: one character, or NoQuote
	Encoding  string `json:"encoding,omitempty"`  // of texts: its IANA name
	Header    *bool  `json:"header,omitempty"`    // nil: there is one; false: columns are called "1", "2", ...
	Sheet     string `json:"sheet,omitempty"`     // of a workbook: its name; "": the first with rows
	// Part are the rows that count: those whose text's hash falls into [from, to) of 0..1, so
	// that parts of one file share no text. Zero: all.
	Part [2]float64 `json:"part,omitzero"`
}

// NoQuote is the Quote of a file in which nothing is quoted.
const NoQuote = "none"

var formats = map[string]Format{".tsv": TSV, ".csv": CSV, ".jsonl": JSONL, ".ndjson": JSONL}

// OfTexts reports whether all values are texts, for rows know no numbers.
func (f Format) OfTexts() bool { return f == TSV || f == CSV || f == XLSX }

// FormatOf guesses the format from a file's name; TSV where it says nothing.
func FormatOf(path string) Format {
	return cmp.Or(named(path), TSV)
}

// Is reports whether a file's name says that it holds rows.
func Is(path string) bool { return named(path) != "" }

func named(path string) Format { return formats[strings.ToLower(filepath.Ext(path))] }
