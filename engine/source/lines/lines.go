package lines

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// Max is the length in bytes above which a line is refused.
const Max = 1 << 20

// ErrTooLong says that a line is longer than Max.
var ErrTooLong = errors.New("it is longer than " + strconv.Itoa(Max) + " bytes")

// Reader returns the lines of a stream.
type Reader struct {
	in  *bufio.Reader
	end byte
	n   int
	buf []byte
}

// New returns a Reader of lines that end in a byte: '\n', or '\r' of old Macs.
func New(in *bufio.Reader, end byte) *Reader { return &Reader{in: in, end: end} }

// Line is the number of the line that was returned last; the first is 1.
func (l *Reader) Line() int { return l.n }

// Next returns a line without its end. It is valid until the next call. ErrTooLong is the
// error of one line, of which the rest is skipped; io.EOF and others end the stream.
func (l *Reader) Next() ([]byte, error) {
	line, err := l.in.ReadSlice(l.end)
	tooLong := len(line) > Max
	if err == bufio.ErrBufferFull {
		l.buf = append(l.buf[:0], line...)
		for err == bufio.ErrBufferFull {
			if line, err = l.in.ReadSlice(l.end); !tooLong {
				tooLong = len(l.buf)+len(line) > Max
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
		return nil, ErrTooLong
	}
	return bytes.TrimRight(line, "\r\n"), nil
}
