package rows

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// This file reads rows in JSON: one object a line (JSONL), or the elements of an array of any
// length, alone or in an object. It reads one element at a time, so that memory is bounded.
//
// It keeps the order of members, unlike encoding/json, and the spelling of values. It does not know
// what members mean.

// JSONRow is a row before it is parsed.
type JSONRow struct {
	Line int    // on which the row starts
	Raw  []byte // valid until the next call of Next; may be invalid JSON
	Err  error  // not nil: the row is unusable
}

// JSONL reads a row from each line that is not blank.
type JSONL struct{ in *Lines }

// NewJSONL returns a reader of JSONL.
func NewJSONL(in *Lines) *JSONL { return &JSONL{in} }

// Next returns the next row. It ends with io.EOF.
func (l *JSONL) Next() (JSONRow, error) {
	for {
		line, err := l.in.Next()
		switch {
		case errors.Is(err, ErrLineTooLong):
			return JSONRow{Line: l.in.Line(), Err: err}, nil
		case err != nil:
			return JSONRow{}, err
		case len(bytes.TrimSpace(line)) > 0:
			return JSONRow{Line: l.in.Line(), Raw: line}, nil
		}
	}
}

// token reads the next byte that is not white space.
func (s *JSONArray) token() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case c == '\n':
			s.line++
		case c != ' ' && c != '\t' && c != '\r':
			return c, nil
		}
	}
}

// back unreads a token.
func (s *JSONArray) back(byte) error { return s.in.UnreadByte() }

// value reads the rest of a value after its first byte. With keep, it returns the value, valid
// until the next call; a value above MaxLine is read to its end and fails with ErrLineTooLong. It
// does not check that the value is valid JSON: it finds the end by quotes and brackets.
func (s *JSONArray) value(first byte, keep bool) (raw []byte, err error) {
	s.raw = s.raw[:0]
	depth, quoted, escaped, tooLong := 0, false, false, false
	for c := first; ; {
		if keep && !tooLong {
			if tooLong = len(s.raw) >= MaxLine; !tooLong {
				s.raw = append(s.raw, c)
			}
		}
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if c == '\n' {
			s.line++
		}
		if depth <= 0 && !quoted && (first == '{' || first == '[' || first == '"') {
			break
		}
		if c, err = s.in.ReadByte(); err != nil {
			return nil, err
		}
		if depth == 0 && !quoted && (c == ',' || c == ']' || c == '}') { // the end of a number or a word
			if err := s.in.UnreadByte(); err != nil {
				return nil, err
			}
			break
		}
	}
	if tooLong {
		return nil, ErrLineTooLong
	}
	return s.raw, nil
}

// JSONArray reads the elements of an array, which stands alone or is a member of an object.
type JSONArray struct {
	in     *bufio.Reader
	array  string // name of the member; empty: the only member with rows
	line   int
	inside bool     // the array is in an object
	open   int      // the line on which the array opens
	found  []string // names of members that are arrays of rows
	named  []string // names of other members
	raw    []byte   // of the current element
	state  func() (JSONRow, error)
}

// NewJSONArray returns a reader of an array. array names the member to read if an object has
// several arrays of rows.
func NewJSONArray(in *bufio.Reader, array string) *JSONArray {
	s := &JSONArray{in: in, array: array, line: 1}
	s.state = s.start
	return s
}

// Line returns the line up to which the stream has been read.
func (s *JSONArray) Line() int { return s.line }

// Next returns the next row. It ends with io.EOF.
func (s *JSONArray) Next() (JSONRow, error) { return s.state() }

// start looks for the array.
func (s *JSONArray) start() (JSONRow, error) {
	c, err := s.token()
	switch {
	case errors.Is(err, io.EOF):
		return JSONRow{}, errors.New("the file is empty")
	case err != nil:
		return JSONRow{}, err
	case c == '[':
		s.open, s.state = s.line, s.element
		return s.element()
	case c == '{':
		s.inside, s.state = true, s.member
		return s.member()
	}
	return JSONRow{}, s.wrong(c, "an array of rows begins with [, and an object that holds one with {; write rows of objects as JSONL, one a line")
}

// member looks for the next array among the members of an object.
func (s *JSONArray) member() (JSONRow, error) {
	for {
		c, err := s.token()
		switch {
		case err != nil:
			return JSONRow{}, s.cut(err, "the object")
		case c == ',':
			continue
		case c == '}':
			return s.last()
		case c != '"':
			return JSONRow{}, s.wrong(c, "the name of a member stands in quotes")
		}
		name, err := s.name()
		if err != nil {
			return JSONRow{}, err
		}
		if c, err = s.token(); err == nil && c != ':' {
			return JSONRow{}, s.wrong(c, "after the name of a member there is a colon")
		}
		if c, err = s.token(); err != nil {
			return JSONRow{}, s.cut(err, "the object")
		}
		if c == '[' {
			rows, err := s.holdsRows()
			if err != nil {
				return JSONRow{}, err
			}
			if rows {
				s.found = append(s.found, name)
				if s.array == "" && len(s.found) == 2 {
					return JSONRow{}, fmt.Errorf("the object holds several arrays of rows, %q and %q: say which one counts with sheet = %q in the file, or --sheet of racflow init", s.found[0], name, s.found[0])
				}
				if s.array == "" || s.array == name {
					s.open, s.state = s.line, s.element
					return s.element()
				}
			}
		}
		s.named = append(s.named, name)
		if _, err := s.value(c, false); err != nil {
			return JSONRow{}, s.cut(err, "the object")
		}
		if len(s.named) > 1000 {
			return JSONRow{}, s.none()
		}
	}
}

// holdsRows reports whether the first element of the array just opened is an object or an array.
func (s *JSONArray) holdsRows() (bool, error) {
	c, err := s.token()
	if err != nil {
		return false, s.cut(err, "an array")
	}
	return c == '{' || c == '[', s.back(c)
}

// element returns the next element of the array.
func (s *JSONArray) element() (JSONRow, error) {
	for {
		c, err := s.token()
		if err != nil {
			return JSONRow{}, s.cut(err, "the array that opens on line "+strconv.Itoa(s.open))
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
		row := JSONRow{Line: s.line}
		row.Raw, err = s.value(c, true)
		if errors.Is(err, ErrLineTooLong) {
			row.Err, err = ErrLineTooLong, nil
		}
		if err != nil {
			return JSONRow{}, s.cut(err, "the array that opens on line "+strconv.Itoa(s.open))
		}
		return row, nil
	}
}

// last checks that nothing follows.
func (s *JSONArray) last() (JSONRow, error) {
	s.state = func() (JSONRow, error) { return JSONRow{}, io.EOF }
	if s.inside && (len(s.found) == 0 || s.array != "" && !contains(s.found, s.array)) {
		return JSONRow{}, s.none()
	}
	c, err := s.token()
	if err == nil {
		return JSONRow{}, s.wrong(c, "after the end of the rows there is nothing else; write rows that are not in one array as JSONL, one a line")
	}
	return JSONRow{}, err
}

func contains(all []string, name string) bool {
	for _, n := range all {
		if n == name {
			return true
		}
	}
	return false
}

// none returns the error of an object without the wanted array.
func (s *JSONArray) none() error {
	if s.array != "" && len(s.found) > 0 {
		return fmt.Errorf("the object has no array of rows %q: it has %s", s.array, strings.Join(s.found, ", "))
	}
	return fmt.Errorf("the file is one object, and none of its members (%s) is an array of rows: write each row as an object on a line of its own, as JSONL", strings.Join(s.named[:min(len(s.named), 8)], ", "))
}

func (s *JSONArray) wrong(c byte, advice string) error {
	return fmt.Errorf("line %d: it is not JSON: there is %q, but %s", s.line, string(rune(c)), advice)
}

func (s *JSONArray) cut(err error, what string) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the file is cut off: %s is never closed; get the file once more", what)
	}
	return err
}

// maxName is the most bytes of a member's name that is accepted.
const maxName = 64 << 10

// name reads the name of a member after its opening quote.
func (s *JSONArray) name() (string, error) {
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
