package source

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/source/rows"
)

// Reader reads the rows of one source.
type Reader struct {
	path    string
	files   []string // of a glob; nil: the source is one file or standard input
	form    Form
	mapping Mapping

	at      *file // the current file
	opened  int   // number of files opened
	before  []int // for each opened file, the number of lines in the files before it
	columns []string
	digests []string // of the files before the current one

	respelt int // number of rows whose labels are read in another spelling
	first   Row // the first of these rows

	size int64 // of all files, in bytes; -1: unknown
	read atomic.Int64
}

// HashBytes is the length of a row's Hash.
const HashBytes = 16

// Hash returns the hash of the row's content: text, label, metadata and context.
func (r Row) Hash() []byte {
	parts := []any{r.Text, r.Label, r.Meta}
	if r.Context != "" { // so entries from before contexts existed keep their hash
		parts = append(parts, r.Context)
	}
	content, err := json.Marshal(parts)
	if err != nil {
		panic(err) // cannot happen: strings, numbers and booleans always encode
	}
	sum := sha256.Sum256(content)
	return sum[:HashBytes]
}

// EntryID returns the id of a row with this hash in a knowledge: its own id or, without one, an id derived from its
// content. So adding or removing other rows does not rename it. Equal rows are numbered: taken has the ids of the rows
// before.
func EntryID[T any](r Row, hash []byte, taken map[string]T) string {
	if r.ID != "" {
		return r.ID
	}
	content := hex.EncodeToString(hash[:8])
	id := content
	for n := 2; ; n++ {
		if _, ok := taken[id]; !ok {
			return id
		}
		id = content + "-" + strconv.Itoa(n)
	}
}

// file reads one file of a source, or standard input.
type file struct {
	path        string
	form        Form // given or detected
	compression string
	escaped     bool // backslashes escape
	mapping     Mapping
	patient     bool       // a regular file, which can be read ahead, and again
	text        *rows.Text // nil: a binary format

	next       func() (Row, error)
	columns    func() []string
	unnamed    []string        // names given to columns without a name in the header
	fields     []string        // names of Row.Fields in each row; nil: none, or they differ
	lines      func() int      // returns the number of lines so far
	found      func() []string // what notes reports about a workbook; nil: the file is no workbook
	uncomputed map[int]int     // of a workbook: number of formulas without a value, by column
	digest     func() (string, error)
	close      func() error
}

// openFile opens a file, or stdin if path is "-". It adds the number of bytes that it reads to read.
func openFile(path string, form Form, m Mapping, stdin io.Reader, read *atomic.Int64) (*file, error) {
	f := &file{path: path, form: form, mapping: m, close: func() error { return nil }}
	if f.form.Format == "" {
		f.form.Format = FormatOf(path)
	}
	in := stdin
	if path != "-" {
		opened, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		if info, err := opened.Stat(); err == nil {
			f.patient = info.Mode().IsRegular()
		}
		in, f.close = opened, opened.Close
		if format := tableOf(f.form.Format, opened); format != "" {
			f.form.Format = format
			if err := f.startTable(opened, read); err != nil {
				return nil, errors.Join(err, f.close())
			}
			return f, nil
		}
	}
	h := sha256.New()
	f.digest = func() (string, error) { return hex.EncodeToString(h.Sum(nil)), nil }
	counted := io.TeeReader(in, io.MultiWriter(h, counter{read}))
	if err := f.start(bufio.NewReaderSize(counted, rows.BufferSize)); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// counter counts the bytes written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// notes reports detections that may be wrong.
func (f *file) notes() (all []string) {
	if f.found != nil {
		return f.found()
	}
	if f.escaped {
		all = append(all, f.path+` has backslashes before quotes and delimiters in fields: they are left out`)
	}
	if f.text == nil || !f.text.Guessed() {
		return all
	}
	return append(all, f.path+" is not UTF-8 and is read as "+f.text.Encoding()+`: if characters look wrong, say how it is written, such as encoding = "iso-8859-2"`)
}

func (f *file) errorAt(line int, err error) error {
	return &FileError{Path: f.path, Line: line, Column: 1, Err: err}
}

// IsGlob reports whether a path is a pattern of several files. An existing file with such a name is
// no pattern.
func IsGlob(path string) bool { return disk.IsGlob(path) }

// Files returns the file of a path or, for a glob, all matching files, sorted.
func Files(path string) ([]string, error) {
	base, pattern := disk.SplitGlob(path)
	if pattern == "" {
		return []string{path}, nil
	}
	if err := disk.CheckGlob(pattern); err != nil {
		return nil, err
	}
	var files []string
	for _, p := range []string{norm.NFC.String(pattern), norm.NFD.String(pattern)} { // finds either form
		found, err := doublestar.Glob(os.DirFS(base), p, doublestar.WithFilesOnly(), doublestar.WithFailOnIOErrors())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, name := range found {
			if !disk.IsLock(name) {
				files = append(files, filepath.Join(base, name))
			}
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file matches %s: mend the pattern, or name a file", path)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// Regular reports whether a path names only regular files, which can be read more than once.
func Regular(path string) bool {
	files, err := Files(path)
	return err == nil && path != "-" && sizeOf(files) >= 0
}

// sizeOf returns the total size of files in bytes; -1: at least one is not a regular file.
func sizeOf(files []string) (size int64) {
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return -1
		}
		size += info.Size()
	}
	return size
}

// Digest computes the final Reader.Digest of a source without parsing it; empty for standard input
// and pipes, which can be read only once.
func Digest(path string) (string, error) {
	if path == "-" {
		return "", nil
	}
	files, err := Files(path)
	if err != nil {
		return "", err
	}
	digests := make([]string, len(files))
	for i, name := range files {
		if digests[i], err = fileDigest(name); err != nil || digests[i] == "" {
			return "", err
		}
	}
	if !IsGlob(path) {
		return digests[0], nil
	}
	return digestOf(digests), nil
}

// fileDigest returns the hash of a regular file; empty for others.
func fileDigest(path string) (string, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return hashOf(f)
}

func hashOf(in io.Reader) (string, error) {
	h := sha256.New()
	_, err := io.Copy(h, in)
	return hex.EncodeToString(h.Sum(nil)), err
}

// digestOf combines the digests of a glob's files.
func digestOf(digests []string) string {
	sum := sha256.Sum256([]byte(strings.Join(digests, "\n")))
	return hex.EncodeToString(sum[:])
}

// Shares reports whether two parts of the same rows may have rows in common.
func (f Form) Shares(other Form) bool {
	if f.Where[0] == other.Where[0] && f.Where[1] != other.Where[1] || f.Sheet != "" && other.Sheet != "" && f.Sheet != other.Sheet {
		return false
	}
	whole := func(part [2]float64) [2]float64 {
		if part == [2]float64{} {
			part[1] = 1
		}
		return part
	}
	a, b := whole(f.Part), whole(other.Part)
	return max(a[0], b[0]) < min(a[1], b[1])
}

// in reports whether a text belongs to a part. Texts that differ only in case and white space belong to the same part.
func in(part [2]float64, text string) bool {
	from, to := part[0], part[1]
	sum := sha256.Sum256([]byte(strings.ToLower(spaced(text))))
	at := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53) // always below 1
	return from <= at && at < to
}

// Open opens a file, all files of a glob in the order of their names, or stdin if path is "-". It reads the beginning
// of each file, so that an unreadable file is reported before any row of the others is used.
func Open(path string, f Form, m Mapping, stdin io.Reader) (*Reader, error) {
	r := &Reader{path: path, form: f, mapping: m, before: []int{0}}
	if path == "-" {
		r.size = -1
		return r, r.open(path, stdin)
	}
	files, err := Files(path)
	if err != nil {
		return nil, err
	}
	r.size = sizeOf(files)
	if IsGlob(path) {
		r.files = files
	}
	for _, name := range files[1:] {
		f, err := openFile(name, r.form, r.mapping, nil, new(atomic.Int64))
		if err != nil {
			return nil, err
		}
		if err := f.close(); err != nil {
			return nil, err
		}
	}
	if err := r.open(files[0], nil); err != nil {
		return nil, err
	}
	if r.at.form.Format == XLSX { // unpacked before the first row is read
		r.size = -1
	}
	return r, nil
}

// OfRows returns a reader of rows that were read before. A row without its own File gets path.
func OfRows(path string, all []Row) *Reader {
	left, sum := all, sha256.New()
	return &Reader{path: path, before: []int{0}, size: -1, at: &file{
		path: path, columns: func() []string { return nil }, lines: func() int { return len(all) }, close: func() error { return nil },
		digest: func() (string, error) { return hex.EncodeToString(sum.Sum(nil)), nil },
		next: func() (Row, error) {
			if len(left) == 0 {
				return Row{}, io.EOF
			}
			row := left[0]
			left = left[1:]
			sum.Write(row.Hash())
			return row, nil
		},
	}}
}

// open opens the next file.
func (r *Reader) open(path string, stdin io.Reader) error {
	f, err := openFile(path, r.form, r.mapping, stdin, &r.read)
	if err != nil {
		return err
	}
	r.at, r.opened = f, r.opened+1
	return nil
}

// Next returns the next row. It ends with io.EOF.
func (r *Reader) Next() (Row, error) {
	for {
		row, err := r.at.next()
		if errors.Is(err, io.EOF) && r.opened < len(r.files) {
			if err := r.turn(); err != nil {
				return Row{}, err
			}
			continue
		}
		if err != nil {
			return row, err
		}
		if r.files != nil {
			row.File, row.before = r.files[r.opened-1], r.before[r.opened-1]
			row.Line += row.before
		}
		if row.out || r.form.Part != [2]float64{} && !in(r.form.Part, row.Text) {
			continue
		}
		if row.Err != nil {
			row.Err = &RowError{row.Err}
		} else if row.respelt != "" {
			if r.respelt++; r.respelt == 1 {
				r.first = row
			}
		}
		return row, nil
	}
}

// turn closes the current file at its end, and opens the next file.
func (r *Reader) turn() error {
	r.columns = merged(r.columns, r.at.columns())
	before := r.before[r.opened-1] + r.at.lines()
	digest, err := r.at.digest()
	if err != nil {
		return err
	}
	r.digests = append(r.digests, digest)
	if err := r.at.close(); err != nil {
		return err
	}
	r.before = append(r.before, before)
	return r.open(r.files[r.opened], nil)
}

// Columns returns the names of the columns, in the file's order; for JSON, of the rows so far; for
// a glob, of the files so far.
func (r *Reader) Columns() []string { return merged(r.columns, r.at.columns()) }

// Fields returns the names of Row.Fields, the same in each valid row; false: they are unknown
// before all rows have been read, as with JSON or several files.
func (r *Reader) Fields() ([]string, bool) { return r.at.fields, r.files == nil && r.at.fields != nil }

// Form returns how the current file is written, as given and detected.
func (r *Reader) Form() Form {
	f := r.at.form
	if text := r.at.text; f.Encoding == "" && text != nil && text.Encoding() != "utf-8" {
		f.Encoding = text.Encoding()
	}
	return f
}

// Notes reports detections in the current file that may be wrong, and labels of the rows so far that are read in
// another spelling, a sentence each.
func (r *Reader) Notes() []string {
	notes := r.at.notes()
	if note := r.Respelt(); note != "" {
		notes = append(notes, r.path+": "+note)
	}
	return notes
}

// Respelt describes labels of the rows so far that are read in another spelling; empty: none.
func (r *Reader) Respelt() string {
	if r.respelt == 0 {
		return ""
	}
	file, line := r.first.Place()
	return fmt.Sprintf("labels are read without blanks and invisible characters at their ends, and in Unicode NFC; written otherwise: %d, the first on line %s: %+q",
		r.respelt, strings.TrimSuffix(fmt.Sprint(line, " of ", file), " of "), r.first.respelt)
}

// Progress returns how many bytes of the files on disk have been read, and their total size; -1:
// the size is unknown. Any goroutine may call it at any time.
func (r *Reader) Progress() (read, size int64) {
	if read = r.read.Load(); r.size >= 0 {
		read = min(read, r.size) // parts of some files are read twice
	}
	return read, r.size
}

// Digest identifies the content read so far; at the end, the whole content.
func (r *Reader) Digest() string {
	digest, err := r.at.digest()
	if err != nil {
		digest = err.Error() // matches the digest of no content
	}
	if r.files == nil {
		return digest
	}
	return digestOf(append(r.digests[:len(r.digests):len(r.digests)], digest))
}

// Close closes the current file.
func (r *Reader) Close() error { return r.at.close() }

// merged returns names, followed by the names in more that are not in names.
func merged(names, more []string) []string {
	if len(names) == 0 {
		return more
	}
	known := make(map[string]bool, len(names))
	for _, name := range names {
		known[name] = true
	}
	all := names[:len(names):len(names)]
	for _, name := range more {
		if !known[name] {
			all = append(all, name)
		}
	}
	return all
}
