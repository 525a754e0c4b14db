package jsonrows

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/source/lines"
)

// Stream reads the elements of an array, which stands alone or is a member of an object.
type Stream struct {
	in     *bufio.Reader
	array  string // name of the member; empty: the only one that holds rows
	line   int
	inside bool     // of an object
	open   int      // the line on which the array opens
	found  []string // members that are arrays of rows
	named  []string // members that are not
	raw    []byte   // of the element
	state  func() (Row, error)
}

// NewStream returns a reader of an array. Of an object with several arrays of rows, array
// says which counts.
func NewStream(in *bufio.Reader, array string) *Stream {
	s := &Stream{in: in, array: array, line: 1}
	s.state = s.start
	return s
}

// Line is the line up to which the stream has been read.
func (s *Stream) Line() int { return s.line }

// Next returns the next row. It ends with io.EOF.
func (s *Stream) Next() (Row, error) { return s.state() }

// start looks for the array.
func (s *Stream) start() (Row, error) {
	c, err := s.token()
	switch {
	case errors.Is(err, io.EOF):
		return Row{}, errors.New("the file is empty")
	case err != nil:
		return Row{}, err
	case c == '[':
		s.open, s.state = s.line, s.element
		return s.element()
	case c == '{':
		s.inside, s.state = true, s.member
		return s.member()
	}
	return Row{}, s.wrong(c, "an array of rows begins with [, and an object that holds one with {; write rows of objects as JSONL, one a line")
}

// member looks for the next array among the members of an object.
func (s *Stream) member() (Row, error) {
	for {
		c, err := s.token()
		switch {
		case err != nil:
			return Row{}, s.cut(err, "the object")
		case c == ',':
			continue
		case c == '}':
			return s.last()
		case c != '"':
			return Row{}, s.wrong(c, "the name of a member stands in quotes")
		}
		name, err := s.name()
		if err != nil {
			return Row{}, err
		}
		if c, err = s.token(); err == nil && c != ':' {
			return Row{}, s.wrong(c, "after the name of a member there is a colon")
		}
		if c, err = s.token(); err != nil {
			return Row{}, s.cut(err, "the object")
		}
		if c == '[' {
			rows, err := s.holdsRows()
			if err != nil {
				return Row{}, err
			}
			if rows {
				s.found = append(s.found, name)
				if s.array == "" && len(s.found) == 2 {
					return Row{}, fmt.Errorf("the object holds several arrays of rows, %q and %q: say which one counts with sheet = %q in the file, or --sheet of racflow init", s.found[0], name, s.found[0])
				}
				if s.array == "" || s.array == name {
					s.open, s.state = s.line, s.element
					return s.element()
				}
			}
		}
		s.named = append(s.named, name)
		if _, err := s.value(c, false); err != nil {
			return Row{}, s.cut(err, "the object")
		}
		if len(s.named) > 1000 {
			return Row{}, s.none()
		}
	}
}

// holdsRows reports whether the first element of an array that has been opened is an object
// or an array.
func (s *Stream) holdsRows() (bool, error) {
	c, err := s.token()
	if err != nil {
		return false, s.cut(err, "an array")
	}
	return c == '{' || c == '[', s.back(c)
}

// element returns the next element of the array.
func (s *Stream) element() (Row, error) {
	for {
		c, err := s.token()
		if err != nil {
			return Row{}, s.cut(err, "the array that opens on line "+strconv.Itoa(s.open))
		}
		switch c {
		case ',':
			continue
		case ']':
			if s.inside {
				s.state = s.member
				return s.member()
			}
			return s.last()
		}
		row := Row{Line: s.line}
		row.Raw, err = s.value(c, true)
		if errors.Is(err, lines.ErrTooLong) {
			row.Err, err = lines.ErrTooLong, nil
		}
		if err != nil {
			return Row{}, s.cut(err, "the array that opens on line "+strconv.Itoa(s.open))
		}
		return row, nil
	}
}

// last makes sure that nothing follows.
func (s *Stream) last() (Row, error) {
	s.state = func() (Row, error) { return Row{}, io.EOF }
	if s.inside && (len(s.found) == 0 || s.array != "" && !contains(s.found, s.array)) {
		return Row{}, s.none()
	}
	c, err := s.token()
	if err == nil {
		return Row{}, s.wrong(c, "after the end of the rows there is nothing else; write rows that are not in one array as JSONL, one a line")
	}
	return Row{}, err
}

func contains(all []string, name string) bool {
	for _, n := range all {
		if n == name {
			return true
		}
	}
	return false
}

// none is the error of an object without the array that is looked for.
func (s *Stream) none() error {
	if s.array != "" && len(s.found) > 0 {
		return fmt.Errorf("the object has no array of rows %q: it has %s", s.array, strings.Join(s.found, ", "))
	}
	return fmt.Errorf("the file is one object, and none of its members (%s) is an array of rows: write each row as an object on a line of its own, as JSONL", strings.Join(s.named[:min(len(s.named), 8)], ", "))
}

func (s *Stream) wrong(c byte, advice string) error {
	return fmt.Errorf("line %d: it is not JSON: there is %q, but %s", s.line, string(rune(c)), advice)
}

func (s *Stream) cut(err error, what string) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the file is cut off: %s is never closed; get the file once more", what)
	}
	return err
}

// maxName is the length in bytes above which the name of a member is refused.
const maxName = 64 << 10

// name reads the name of a member whose quote has been read.
func (s *Stream) name() (string, error) {
	raw, err := s.value('"', true)
	if err != nil {
		return "", s.cut(err, "a name")
	}
	if len(raw) > maxName {
		return "", fmt.Errorf("line %d: the name of a member is longer than %d bytes", s.line, maxName)
	}
	var name string
	if err := json.Unmarshal(raw, &name); err != nil {
		return "", fmt.Errorf("line %d: it is not JSON: %w", s.line, err)
	}
	return name, nil
}
