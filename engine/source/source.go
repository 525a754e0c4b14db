package source

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// MaxRow is the length in bytes above which a row is refused.
const MaxRow = 1 << 20

// Format is how rows are written in a file.
type Format string

// The formats.
const (
	TSV   Format = "tsv"
	CSV   Format = "csv"
	JSONL Format = "jsonl"
)

var formats = map[string]Format{".tsv": TSV, ".csv": CSV, ".jsonl": JSONL, ".ndjson": JSONL}

// FormatOf guesses the format from a file's name; TSV where it says nothing.
func FormatOf(path string) Format {
	return cmp.Or(named(path), TSV)
}

// Is reports whether a file's name says that it holds rows.
func Is(path string) bool { return named(path) != "" }

func named(path string) Format { return formats[strings.ToLower(filepath.Ext(path))] }

// Mapping says which column means what.
type Mapping struct {
	ID, Text, Label string   // column names; rows without ID or Label are fine
	Context         string   // column of the texts' contexts; empty: none
	Gold            string   // column of the gold passages; empty: none
	Meta            []string // columns kept as metadata; nil: all others
}

// Row is one row of a source.
type Row struct {
	Line    int    // where it starts in the file; 1 is the first line
	ID      string // empty: the row has none
	Text    string
	Label   string
	Context string // says where the text stands; empty: nothing
	Gold    []Gold // what should be found for it; nil: that is not known
	Meta    sdk.Meta
	Err     error // set: the row cannot be used
}

// FileError says that a whole file cannot be read.
type FileError struct {
	Path         string
	Line, Column int
	Err          error // what is wrong and what to do
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", e.Path, e.Line, e.Column, e.Err)
}
func (e *FileError) Unwrap() error { return e.Err }

// Reader reads the rows of one source.
type Reader struct {
	path    string
	mapping Mapping
	close   func() error
	digest  hash.Hash
	next    func() (Row, error)
}

// Open opens a file, or stdin where path is "-". An empty format means
// FormatOf(path).
func Open(path string, format Format, m Mapping, stdin io.Reader) (*Reader, error) {
	r := &Reader{path: path, mapping: m, close: func() error { return nil }, digest: sha256.New()}
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		in, r.close = f, f.Close
	}
	if format == "" {
		format = FormatOf(path)
	}
	text := bufio.NewReaderSize(io.TeeReader(in, r.digest), 64<<10)
	if err := r.start(format, text); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *Reader) start(format Format, in *bufio.Reader) error {
	if err := r.checkEncoding(format, in); err != nil {
		return err
	}
	switch format {
	case TSV:
		return r.startTSV(in)
	case CSV:
		return r.startCSV(in)
	case JSONL:
		r.startJSONL(in)
		return nil
	}
	return fmt.Errorf("unknown format %q: use tsv, csv or jsonl", format)
}

// checkEncoding drops a UTF-8 byte order mark and refuses a file that does not begin as
// lines of UTF-8; single invalid rows are found later.
func (r *Reader) checkEncoding(format Format, in *bufio.Reader) error {
	if _, err := in.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		return r.fileError(1, 1, err)
	}
	// Only what is there already: standard input may be slow.
	head, err := in.Peek(in.Buffered())
	if err != nil {
		return r.fileError(1, 1, err)
	}
	first, _, whole := bytes.Cut(head, []byte("\n"))
	switch {
	case len(head) == 0:
		return r.fileError(1, 1, errors.New("the file is empty"))
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}), bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return r.fileError(1, 1, errors.New("the file is UTF-16; save it as UTF-8"))
	case bytes.IndexByte(first, 0) >= 0:
		return r.fileError(1, 1, errors.New("the file is binary; rows are UTF-8 text"))
	case !whole && bytes.IndexByte(head[:len(head)-1], '\r') >= 0: // after the last byte, there may come a newline
		return r.fileError(1, 1, errors.New("its lines end in carriage returns alone; save the file with Unix or Windows line ends"))
	case whole && format != JSONL && !utf8.Valid(first):
		return r.fileError(1, 1, errors.New("the first line is not UTF-8; save the file as UTF-8"))
	case bytes.HasPrefix(head, []byte{0xEF, 0xBB, 0xBF}):
		_, err := in.Discard(3)
		return err
	}
	return nil
}

// Next returns the next row. It ends with io.EOF.
func (r *Reader) Next() (Row, error) { return r.next() }

// Digest identifies what has been read so far; at the end, the whole content.
func (r *Reader) Digest() string { return fmt.Sprintf("%x", r.digest.Sum(nil)) }

// Digest is what Reader.Digest gives at the end of a file, without parsing the
// file; empty for standard input and pipes, which can be read only once.
func Digest(path string) (string, error) {
	if path == "-" {
		return "", nil
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

// Close closes the file.
func (r *Reader) Close() error { return r.close() }

func (r *Reader) fileError(line, column int, err error) error {
	return &FileError{Path: r.path, Line: line, Column: column, Err: err}
}

// check sets the error of a row that was parsed and cannot be used.
func check(row Row) Row {
	switch {
	case row.Err != nil:
	case !utf8.ValidString(row.ID), !utf8.ValidString(row.Text), !utf8.ValidString(row.Label), !utf8.ValidString(row.Context):
		row.Err = errNotUTF8
	case strings.TrimSpace(row.Text) == "":
		row.Err = errors.New("it has no text")
	}
	return row
}

var (
	errTooLong = errors.New("it is longer than " + strconv.Itoa(MaxRow) + " bytes")
	errNotUTF8 = errors.New("it is not valid UTF-8")
)
