package terminal

import (
	"io"
	"io/fs"
	"os"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// Writer writes texts for people to a stream of the process. It replaces what a terminal would obey
// or hide by U+FFFD, even if the stream is no terminal: a log or a pipe may end at one. Lines and
// tabs stay.
type Writer struct {
	stream *os.File
	mu     sync.Mutex
	rest   []byte // the beginning of a character that the next call completes
}

// NewWriter returns a Writer to standard output or standard error.
func NewWriter(stream *os.File) *Writer { return &Writer{stream: stream} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, end := append(w.rest, p...), 0
	for end < len(text) && utf8.FullRune(text[end:]) {
		_, n := utf8.DecodeRune(text[end:])
		end += n
	}
	w.rest = text[end:]
	if _, err := io.WriteString(w.stream, Visible(string(text[:end]), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Fd returns the stream's file descriptor.
func (w *Writer) Fd() uintptr { return w.stream.Fd() }

// Stat describes the stream.
func (w *Writer) Stat() (fs.FileInfo, error) { return w.stream.Stat() }

// Data returns the writer for a program's output, which passes every byte on. If the stream is a
// terminal, the writer still makes the output safe.
func Data(w io.Writer) io.Writer {
	if safe, ok := w.(*Writer); ok && !term.IsTerminal(int(safe.Fd())) {
		return safe.stream
	}
	return w
}
