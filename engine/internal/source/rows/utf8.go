package rows

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// This file reads data that is always UTF-8, because its sender cannot name another encoding:
// bodies of requests, and questions.

const byteOrderMark = "\uFEFF"

// ErrEncoding says that a stream is not UTF-8. Its error says what it is.
var ErrEncoding = errors.New("send UTF-8")

// UTF8 returns a stream without a byte order mark at its beginning. Reading ends with ErrEncoding
// if the stream begins like UTF-16, UTF-32 or a packed file. Later bytes may still not be UTF-8.
func UTF8(in io.Reader) io.Reader {
	return &utf8Reader{in: bufio.NewReaderSize(in, len(byteOrderMark))}
}

type utf8Reader struct {
	in    *bufio.Reader
	begun bool
	err   error
}

func (u *utf8Reader) Read(p []byte) (int, error) {
	if !u.begun {
		u.begun, u.err = true, u.begin()
	}
	if u.err != nil {
		return 0, u.err
	}
	return u.in.Read(p)
}

// begin examines two bytes, and a third one only for a possible mark: the sender of a short line
// may wait for its answer.
func (u *utf8Reader) begin() error {
	head, _ := u.in.Peek(2) // Read returns the error
	switch {
	case bytes.HasPrefix([]byte(byteOrderMark), head) && len(head) == 2:
		if head, _ = u.in.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
			_, err := u.in.Discard(len(head))
			return err
		}
	case string(head) == "\xFF\xFE", string(head) == "\xFE\xFF", bytes.IndexByte(head, 0) >= 0:
		return fmt.Errorf("it is UTF-16 or UTF-32: %w", ErrEncoding)
	}
	if name, packed := Packed(head); packed {
		return fmt.Errorf("it is packed with %s: %w", name, ErrEncoding)
	}
	return nil
}

// TrimMark returns a line without a byte order mark at its beginning: several files, each with a
// mark, may have been joined.
func TrimMark(line []byte) []byte { return bytes.TrimPrefix(line, []byte(byteOrderMark)) }
