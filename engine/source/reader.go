package source

import (
	"errors"
	"io"
	"slices"
	"sync/atomic"
)

// Reader reads the rows of one source.
type Reader struct {
	path    string
	files   []string // a glob's; nil: the source is one file or standard input
	form    Form
	mapping Mapping

	at      *file // the one that is read
	opened  int   // how many of the files have been opened
	before  []int // lines of the files before each one that has been opened
	columns []string
	digests []string // of the files before it

	size int64 // of all files, in bytes; -1: not known
	read atomic.Int64
}

// Open opens a file, all files of a glob in the order of their names, or stdin where path is
// "-". Of each file the beginning is read, so that one that cannot be read is known before
// anything is made of the others.
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
	if r.at.form.Format == XLSX { // which is unpacked before its first row is read
		r.size = -1
	}
	return r, nil
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
		if !row.out && (r.form.Part == [2]float64{} || in(r.form.Part, row.Text)) {
			return row, nil
		}
	}
}

// Place is Row.Place of the row on a line, which has been read.
func (r *Reader) Place(line int) (file string, n int) {
	if r.files == nil {
		return "", line
	}
	i, _ := slices.BinarySearch(r.before, line) // its file begins before the line
	i = max(i-1, 0)
	return r.files[i], line - r.before[i]
}

// turn closes a file that has been read, and opens the next one.
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

// Columns are the names of the columns, in the file's order; of JSON those of the rows so
// far, and of a glob those of the files so far.
func (r *Reader) Columns() []string { return merged(r.columns, r.at.columns()) }

// Fields are the names that Row.Fields has in each row that can be read; false: that is not
// known before all rows have been read, as of JSON and of several files.
func (r *Reader) Fields() ([]string, bool) { return r.at.fields, r.files == nil && r.at.fields != nil }

// Form is how the file that is read now is written, as it was given and found out.
func (r *Reader) Form() Form {
	f := r.at.form
	if text := r.at.text; f.Encoding == "" && text != nil && text.Encoding() != "utf-8" {
		f.Encoding = text.Encoding()
	}
	return f
}

// Notes say what was found out of the file that is read now and may be wrong, a sentence each.
func (r *Reader) Notes() []string { return r.at.notes() }

// Progress is how many bytes have been read of the files as they lie on disk, and how many
// there are; -1: that is not known. It may be called at any time by any goroutine.
func (r *Reader) Progress() (read, size int64) {
	if read = r.read.Load(); r.size >= 0 {
		read = min(read, r.size) // of some files, parts are read twice
	}
	return read, r.size
}

// Digest identifies what has been read so far; at the end, the whole content.
func (r *Reader) Digest() string {
	digest, err := r.at.digest()
	if err != nil {
		digest = err.Error() // it is no content's
	}
	if r.files == nil {
		return digest
	}
	return digestOf(append(r.digests[:len(r.digests):len(r.digests)], digest))
}

// Close closes the source.
func (r *Reader) Close() error { return r.at.close() }

// merged are names with those of more that are not among them.
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
