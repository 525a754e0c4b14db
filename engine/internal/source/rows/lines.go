package rows

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// This file splits a stream at line ends in bounded memory. bufio.Scanner is unsuitable: it stops
// at a line that is too long. Here only the row of that line fails.
//
// It does not know what lines contain.

// MaxLine is the most bytes of an accepted line.
const MaxLine = 1 << 20

// ErrLineTooLong says that a line is longer than MaxLine.
var ErrLineTooLong = errors.New("it is longer than " + strconv.Itoa(MaxLine) + " bytes")

// Lines returns the lines of a stream.
type Lines struct {
	in  *bufio.Reader
	end byte
	n   int
	buf []byte
}

// NewLines returns the lines of a stream. end ends each line: '\n', or '\r' on old Macs.
func NewLines(in *bufio.Reader, end byte) *Lines { return &Lines{in: in, end: end} }

// Line returns the number of the latest line; the first is 1.
func (l *Lines) Line() int { return l.n }

// Next returns a line without its end, valid until the next call. ErrLineTooLong concerns one line,
// whose rest is skipped; io.EOF and other errors end the stream.
func (l *Lines) Next() ([]byte, error) {
	line, err := l.in.ReadSlice(l.end)
	tooLong := len(line) > MaxLine
	if err == bufio.ErrBufferFull {
		l.buf = append(l.buf[:0], line...)
		for err == bufio.ErrBufferFull {
			if line, err = l.in.ReadSlice(l.end); !tooLong {
				tooLong = len(l.buf)+len(line) > MaxLine
			}
			if !tooLong {
				l.buf = append(l.buf, line...)
			}
		}
		line = l.buf
	}
	if err == io.EOF && len(line) == 0 {
		return nil, io.EOF
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	l.n++
	if tooLong {
		return nil, ErrLineTooLong
	}
	return bytes.TrimRight(line, "\r\n"), nil
}
