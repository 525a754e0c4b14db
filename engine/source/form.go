package source

import (
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
	JSON    Format = "json" // an array of rows, alone or in an object
	Parquet Format = "parquet"
	XLSX    Format = "xlsx" // a workbook of Excel
)

// Form says how the rows of a file are written. What is zero is found out from the file's
// name and content.
type Form struct {
	Format    Format `json:"format,omitempty"`
	Delimiter string `json:"delimiter,omitempty"` // between the fields of TSV and CSV: one character
	Quote     string `json:"quote,omitempty"`     // around fields of TSV and CSV: one character, or NoQuote
	Encoding  string `json:"encoding,omitempty"`  // of texts: its IANA name
	Header    *bool  `json:"header,omitempty"`    // nil: there is one; false: columns are called "1", "2", ...
	// HeaderRow is the row that names the columns, from 1 on, where other lines stand before it; 0: the
	// first one. In a text it is a line.
	HeaderRow int    `json:"header_row,omitempty"`
	Sheet     string `json:"sheet,omitempty"` // of a workbook, or array of an object in JSON: its name; "": the first with rows
	// Part are the rows that count: those whose text's hash falls into [from, to) of 0..1, so
	// that parts of one file share no text. Zero: all.
	Part [2]float64 `json:"part,omitzero"`
	// Where is a column and the value that it has in the rows that count. Zero: all rows count.
	Where [2]string `json:"where,omitzero"`
}

// NoQuote is the Quote of a file in which nothing is quoted.
const NoQuote = "none"

var formats = map[string]Format{
	".tsv": TSV, ".tab": TSV, ".csv": CSV, ".psv": CSV, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSON,
	".parquet": Parquet, ".pq": Parquet, ".xlsx": XLSX, ".xlsm": XLSX,
}

// OfTexts reports whether all values are texts, for rows know no numbers.
func (f Format) OfTexts() bool { return f != JSONL && f != JSON && f != Parquet }

// FormatOf is the format that a file's name says; empty: it says nothing. A name may end as
// those of packed files do.
func FormatOf(path string) Format {
	name := strings.ToLower(filepath.Base(path))
	if packed, ok := packedName(name); ok {
		name = packed
	}
	return formats[filepath.Ext(name)]
}

func packedName(name string) (unpacked string, ok bool) {
	for _, ext := range []string{".gz", ".gzip", ".zst", ".zstd"} {
		if unpacked, ok = strings.CutSuffix(name, ext); ok {
			return unpacked, true
		}
	}
	return name, false
}

// Is reports whether the name of a file, or of a glob, says that it holds rows.
func Is(path string) bool {
	if FormatOf(path) != "" {
		return true
	}
	_, all, ok := strings.Cut(strings.TrimSuffix(filepath.Base(path), "}"), ".{")
	if !ok {
		return false
	}
	for ext := range strings.SplitSeq(all, ",") {
		if FormatOf("."+ext) == "" {
			return false
		}
	}
	return true
}
