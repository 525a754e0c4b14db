package source

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/source/delimited"
	"github.com/racflow/racflow/engine/source/jsonrows"
	"github.com/racflow/racflow/engine/source/lines"
)

// file is one file of a source, or standard input.
type file struct {
	path        string
	form        Form // as given and found out
	notes       []string
	compression string
	mapping     Mapping

	next    func() (Row, error)
	columns func() []string
	lines   func() int // so far
	digest  func() (string, error)
	close   func() error
}

// openFile opens a file, or stdin where path is "-", and adds to read the bytes that are read
// of it.
func openFile(path string, form Form, m Mapping, stdin io.Reader, read *atomic.Int64) (*file, error) {
	f := &file{path: path, form: form, mapping: m, close: func() error { return nil }}
	in := stdin
	if path != "-" {
		opened, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		in, f.close = opened, opened.Close
	}
	h := sha256.New()
	f.digest = func() (string, error) { return hex.EncodeToString(h.Sum(nil)), nil }
	counted := io.TeeReader(in, io.MultiWriter(h, counter{read}))
	if err := f.start(bufio.NewReaderSize(counted, 64<<10)); err != nil {
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

// start makes the file ready to return rows.
func (f *file) start(in *bufio.Reader) error {
	f.form.Format = cmp.Or(f.form.Format, FormatOf(f.path))
	if err := f.checkEncoding(in); err != nil {
		return err
	}
	text := lines.New(in, '\n')
	f.lines = text.Line
	switch f.form.Format {
	case TSV:
		return f.startDelimited(text, delimited.Style{Delimiter: []byte("\t")})
	case CSV:
		return f.startDelimited(text, delimited.Style{Delimiter: []byte(","), Quote: []byte(`"`)})
	case JSONL:
		f.startObjects(jsonrows.NewLines(text))
		return nil
	}
	return fmt.Errorf("unknown format %q: use tsv, csv or jsonl", f.form.Format)
}

func (f *file) startDelimited(in *lines.Reader, style delimited.Style) error {
	records := delimited.New(in, style)
	first, err := records.Next()
	if err = cmp.Or(err, first.Err); errors.Is(err, io.EOF) {
		err = errors.New("the file has no header line: its first line names the columns")
	}
	if err != nil {
		return f.errorAt(max(first.Line, 1), err)
	}
	h, err := f.mapping.header(append([]string(nil), first.Fields...))
	if err != nil {
		return f.errorAt(first.Line, err)
	}
	f.columns = func() []string { return h.names }
	f.next = func() (Row, error) {
		r, err := records.Next()
		switch {
		case err != nil:
			return Row{}, err
		case r.Err != nil:
			return Row{Line: r.Line, Err: r.Err}, nil
		}
		return h.row(r.Line, r.Fields), nil
	}
	return nil
}

func (f *file) startObjects(in *jsonrows.Lines) {
	o := f.mapping.object()
	f.columns = func() []string { return o.columns }
	var members []jsonrows.Member
	var fields []Field
	f.next = func() (Row, error) {
		r, err := in.Next()
		if err != nil {
			return Row{}, err
		}
		if r.Err == nil {
			members, r.Err = jsonrows.Members(members[:0], r.Raw, false)
		}
		if r.Err != nil {
			return Row{Line: r.Line, Err: r.Err}, nil
		}
		fields = fields[:0]
		for _, m := range members {
			fields = append(fields, Field{m.Name, m.Value})
		}
		return o.row(r.Line, fields), nil
	}
}

// checkEncoding drops a UTF-8 byte order mark and refuses a file that does not begin as
// lines of UTF-8; single invalid rows are found later.
func (f *file) checkEncoding(in *bufio.Reader) error {
	if _, err := in.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		return f.errorAt(1, err)
	}
	// Only what is there already: standard input may be slow.
	head, err := in.Peek(in.Buffered())
	if err != nil {
		return f.errorAt(1, err)
	}
	first, _, whole := bytes.Cut(head, []byte("\n"))
	switch {
	case len(head) == 0:
		return f.errorAt(1, errors.New("the file is empty"))
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}), bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return f.errorAt(1, errors.New("the file is UTF-16; save it as UTF-8"))
	case bytes.IndexByte(first, 0) >= 0:
		return f.errorAt(1, errors.New("the file is binary; rows are UTF-8 text"))
	case !whole && bytes.IndexByte(head[:len(head)-1], '\r') >= 0: // after the last byte, there may come a newline
		return f.errorAt(1, errors.New("its lines end in carriage returns alone; save the file with Unix or Windows line ends"))
	case whole && f.form.Format != JSONL && !utf8.Valid(first):
		return f.errorAt(1, errors.New("the first line is not UTF-8; save the file as UTF-8"))
	case bytes.HasPrefix(head, []byte{0xEF, 0xBB, 0xBF}):
		_, err := in.Discard(3)
		return err
	}
	return nil
}

func (f *file) errorAt(line int, err error) error {
	return &FileError{Path: f.path, Line: line, Column: 1, Err: err}
}
