package result

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Formats of results.
const (
	JSONL   = "jsonl"
	TSV     = "tsv"
	CSV     = "csv"
	Parquet = "parquet"
	Table   = "table"
)

// Formats are all of them.
var Formats = []string{JSONL, TSV, CSV, Parquet, Table}

// Compressions of results.
const (
	GZ  = "gz"
	ZST = "zst"
)

func unknownFormat(format string) error {
	last := len(Formats) - 1
	return fmt.Errorf("unknown format %q: use %s or %s", format, strings.Join(Formats[:last], ", "), Formats[last])
}

// CheckFormat refuses a format that there is not.
func CheckFormat(format string) error {
	if !slices.Contains(Formats, format) {
		return unknownFormat(format)
	}
	return nil
}

// Named returns the format that a file's name says, and how it is compressed. Either is
// empty where the name does not say it.
func Named(name string) (format, compression string) {
	ext := extension(name)
	if ext == GZ || ext == ZST {
		compression = ext
		ext = extension(strings.TrimSuffix(name, filepath.Ext(name)))
	}
	switch ext {
	case "ndjson":
		return JSONL, compression
	case JSONL, TSV, CSV, Parquet:
		return ext, compression
	}
	return "", compression
}

func extension(name string) string {
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(name), "."))
}

// packer compresses what is written to it.
type packer interface {
	io.WriteCloser
	Flush() error
}

// pack returns what compresses results on their way to w, and lets w open.
func pack(w io.Writer, format string, o Options) (packer, error) {
	if o.Compression != "" && (format == Parquet || format == Table) {
		return nil, fmt.Errorf("%s is not written as .%s: leave that out of the name", format, o.Compression)
	}
	var p packer
	switch o.Compression {
	case "":
		return loose{w}, nil
	case GZ:
		p = gzip.NewWriter(w)
	case ZST:
		z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)) // so that the same results are the same bytes
		if err != nil {
			return nil, err
		}
		p = z
	default:
		return nil, errors.New("unknown compression: use gz or zst")
	}
	if !o.Live {
		p = late{p}
	}
	return p, nil
}

// loose compresses nothing.
type loose struct{ io.Writer }

func (loose) Flush() error { return nil }
func (loose) Close() error { return nil }

// late hands on what it compresses when there is enough of it.
type late struct{ packer }

func (late) Flush() error { return nil }
