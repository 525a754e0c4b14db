package source

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"sync/atomic"

	"github.com/racflow/racflow/engine/source/decode"
)

// file is one file of a source, or standard input.
type file struct {
	path        string
	form        Form // as given and found out
	compression string
	mapping     Mapping
	patient     bool         // it is a regular file, which can be read ahead, and again
	text        *decode.Text // nil: it is no text

	next    func() (Row, error)
	columns func() []string
	unnamed []string   // columns that the header has no name for
	fields  []string   // names of Row.Fields in each row; nil: none, or rows differ
	lines   func() int // so far
	digest  func() (string, error)
	close   func() error
}

// openFile opens a file, or stdin where path is "-", and adds to read the bytes that are read
// of it.
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
	if err := f.start(bufio.NewReaderSize(counted, decode.Size)); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// counter counts what is written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// notes say what was found out and may be wrong.
func (f *file) notes() []string {
	if f.text == nil || !f.text.Guessed() {
		return nil
	}
	return []string{f.path + " is not UTF-8 and is read as " + f.text.Encoding() + `: if characters look wrong, say how it is written, such as encoding = "iso-8859-2"`}
}

func (f *file) errorAt(line int, err error) error {
	return &FileError{Path: f.path, Line: line, Column: 1, Err: err}
}
