package rows

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// This file reads rows in JSON: one object a line (JSONL), or the elements of an array of any length, alone or in an
// object. It reads one element at a time, so that memory is bounded.
//
// It keeps the order of members, unlike encoding/json, and the spelling of values. NaN, Infinity and -Infinity, which
// Python writes but JSON does not allow, become null. It does not know what members mean.

// JSONRow is a row before it is parsed.
type JSONRow struct {
	Line int    // on which the row starts
	Raw  []byte // valid until the next call of Next; a line of JSONL may be invalid JSON
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
		line = TrimMark(line)
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

// maxElement is the most bytes of an array element that are read into memory, only to report the element as longer than
// MaxLine.
const maxElement = 16 * MaxLine

// JSONArray reads the elements of an array, which stands alone or is a member of an object. A syntax error ends the
// file, since the end of the row is then unknown.
type JSONArray struct {
	in    *jsonLines
	json  *json.Decoder
	array string          // name of the member; empty: the only member with rows
	found []string        // names of members that are arrays of rows
	named []string        // names of other members
	first json.RawMessage // first element of the array, read ahead
	open  int             // the line on which the array opens
	state func() (JSONRow, error)
}

// NewJSONArray returns a reader of an array. array names the member to read if an object has
// several arrays of rows.
func NewJSONArray(in *bufio.Reader, array string) *JSONArray {
	s := &JSONArray{in: &jsonLines{in: &finite{in: in}, line: 1}, array: array}
	s.json = json.NewDecoder(s.in)
	s.state = s.start
	return s
}

// Line returns the line up to which the stream has been read.
func (s *JSONArray) Line() int { return s.in.lineAt(s.json.InputOffset()) }

// Next returns the next row. It ends with io.EOF.
func (s *JSONArray) Next() (JSONRow, error) {
	row, err := s.state()
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		err = s.syntax(syntax)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF) && s.open > 0:
		err = fmt.Errorf("the file is cut off: the array that opens on line %d is never closed; get the file once more", s.open)
	}
	return row, err
}

// SyntaxError says where a text is not JSON, and why. The rest of the text cannot be read.
type SyntaxError struct {
	Line, Column int
	Err          error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("it is not JSON: %v; nothing behind it can be read, while rows in JSONL, one a line, fail alone", e.Err)
}

// syntax returns where the decoder found an error, and why.
func (s *JSONArray) syntax(found error) error {
	e := &SyntaxError{Line: s.Line(), Column: int(s.json.InputOffset() - s.in.start)}
	rest, _ := io.ReadAll(s.json.Buffered()) // from a buffer
	at, why := notJSON(rest)
	if strings.Contains(why.Error(), "after top-level value") { // the value itself does not belong there
		at, why = len(rest)-len(bytes.TrimLeft(rest, " \t\r\n")), found
	}
	if at < len(rest) && (rest[at] == ']' || rest[at] == '}') && len(bytes.TrimSpace(rest[:at])) == 0 && strings.Contains(found.Error(), "looking for beginning of") {
		why = errComma // the decoder has read it
	}
	before := rest[:min(at, len(rest))]
	if e.Line += bytes.Count(before, []byte("\n")); bytes.IndexByte(before, '\n') >= 0 {
		e.Column = -1 - bytes.LastIndexByte(before, '\n')
	}
	e.Column, e.Err = e.Column+at+1, why
	return e
}

var errComma = errors.New("a comma stands before the closing bracket: remove it")

// notJSON returns the index of the first byte at which a text is not JSON, and the reason.
func notJSON(text []byte) (at int, why error) {
	syntax := &json.SyntaxError{}
	_ = errors.As(json.Unmarshal(text, new(json.RawMessage)), &syntax) // it has no other errors
	at, why = max(int(syntax.Offset)-1, 0), syntax
	if at >= len(text) {
		return at, why
	}
	switch c := text[at]; {
	case (c == ']' || c == '}') && bytes.HasSuffix(bytes.TrimSpace(text[:at]), []byte(",")):
		why = errComma
	case c == '/' || c == '#':
		why = errors.New("it has no comments: remove this one")
	case c == '\'' || bytes.HasPrefix(text[at:], []byte("None")) || bytes.HasPrefix(text[at:], []byte("True")) || bytes.HasPrefix(text[at:], []byte("False")):
		why = fmt.Errorf("this is how Python prints values: write them with json.dumps (%w)", syntax)
	}
	return at, why
}

// start searches for the array.
func (s *JSONArray) start() (JSONRow, error) {
	token, err := s.json.Token()
	switch {
	case errors.Is(err, io.EOF):
		return JSONRow{}, errors.New("the file is empty")
	case token == json.Delim('['):
		s.open, s.state = s.Line(), s.element
		return s.element()
	case token == json.Delim('{'):
		s.open = s.Line()
		s.state = s.member
		return s.member()
	}
	return JSONRow{}, errors.New("an array of rows begins with [, and an object that holds one with {; write rows of objects as JSONL, one a line")
}

// member searches for the next array of rows among the members of an object.
func (s *JSONArray) member() (JSONRow, error) {
	for s.json.More() && len(s.named) < 1000 {
		key, err := s.json.Token()
		if err != nil {
			return JSONRow{}, err
		}
		name, _ := key.(string) // the decoder accepts nothing else there
		s.in.reset()
		value, err := s.json.Token()
		if err != nil {
			return JSONRow{}, err
		}
		open := s.Line()
		if rows, err := s.holdsRows(value); err != nil {
			return JSONRow{}, err
		} else if rows {
			s.found = append(s.found, name)
			if s.array == "" && len(s.found) == 2 {
				return JSONRow{}, fmt.Errorf("the object holds several arrays of rows, %q and %q: say which one counts with sheet = %q in the file, or --sheet of racflow init", s.found[0], name, s.found[0])
			}
			if s.array == "" || s.array == name {
				s.open, s.state = open, s.element
				return s.element()
			}
		}
		s.named = append(s.named, name)
		if err := s.skip(value); err != nil {
			return JSONRow{}, err
		}
	}
	if len(s.found) == 0 || s.array != "" && !slices.Contains(s.found, s.array) {
		return JSONRow{}, s.none()
	}
	return s.last()
}

// holdsRows reports whether a value is an array whose first element is an object or an array, and
// reads that element.
func (s *JSONArray) holdsRows(value json.Token) (bool, error) {
	s.first = nil
	if value != json.Delim('[') || !s.json.More() {
		return false, nil
	}
	err := s.json.Decode(&s.first)
	return len(s.first) > 0 && (s.first[0] == '{' || s.first[0] == '['), err
}

// skip reads the rest of a value.
func (s *JSONArray) skip(value json.Token) error {
	depth := 0
	for {
		switch value {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		var err error
		s.in.reset()
		if value, err = s.json.Token(); err != nil {
			return err
		}
	}
}

// element returns the next element of the array.
func (s *JSONArray) element() (JSONRow, error) {
	raw := s.first
	if s.first = nil; raw == nil {
		if !s.json.More() {
			if _, err := s.json.Token(); err != nil { // the closing bracket
				return JSONRow{}, err
			}
			if len(s.found) > 0 {
				s.state = s.member
				return s.member()
			}
			return s.last()
		}
		s.in.reset()
		if err := s.json.Decode(&raw); err != nil {
			return JSONRow{}, err
		}
	}
	row := JSONRow{Line: s.Line() - bytes.Count(raw, []byte("\n")), Raw: raw}
	if len(raw) > MaxLine {
		row.Raw, row.Err = nil, ErrLineTooLong
	}
	return row, nil
}

// last checks that nothing follows.
func (s *JSONArray) last() (JSONRow, error) {
	if len(s.found) > 0 {
		if _, err := s.json.Token(); err != nil { // the closing brace
			return JSONRow{}, err
		}
	}
	s.open, s.state = 0, func() (JSONRow, error) { return JSONRow{}, io.EOF }
	if _, err := s.json.Token(); !errors.Is(err, io.EOF) {
		return JSONRow{}, fmt.Errorf("line %d: after the end of the rows there is nothing else; write rows that are not in one array as JSONL, one a line", s.Line())
	}
	return JSONRow{}, io.EOF
}

// none returns the error of an object without the wanted array.
func (s *JSONArray) none() error {
	if s.array != "" && len(s.found) > 0 {
		return fmt.Errorf("the object has no array of rows %q: it has %s", s.array, strings.Join(s.found, ", "))
	}
	return fmt.Errorf("the file is one object, and none of its members (%s) is an array of rows: write each row as an object on a line of its own, as JSONL", strings.Join(s.named[:min(len(s.named), 8)], ", "))
}

// jsonLines counts the lines of a stream that a decoder reads ahead. It fails if one value is too long for memory.
type jsonLines struct {
	in    io.Reader
	n     int64   // bytes read
	since int64   // bytes read for the current value
	line  int     // at the first of ends
	start int64   // offset at which that line starts
	ends  []int64 // offsets after the line ends that the decoder may not have reached
}

func (l *jsonLines) Read(p []byte) (int, error) {
	if l.since > maxElement {
		return 0, fmt.Errorf("line %d: a value is longer than %d bytes", l.line, maxElement)
	}
	n, err := l.in.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.ends = append(l.ends, l.n+int64(i)+1)
		}
	}
	l.n, l.since = l.n+int64(n), l.since+int64(n)
	return n, err
}

// reset begins another value.
func (l *jsonLines) reset() { l.since = 0 }

// lineAt returns the line of an offset, which is never before that of an earlier call.
func (l *jsonLines) lineAt(offset int64) int {
	passed, _ := slices.BinarySearch(l.ends, offset+1)
	if l.line += passed; passed > 0 {
		l.start = l.ends[passed-1]
	}
	l.ends = l.ends[passed:]
	return l.line
}

// Finite returns JSON with null in place of NaN, Infinity and -Infinity.
func Finite(text []byte) []byte {
	if !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Infinity")) {
		return text
	}
	text, _ = io.ReadAll(&finite{in: bufio.NewReader(bytes.NewReader(text))}) // from memory
	return text
}

// finite is Finite for a stream.
type finite struct {
	in              *bufio.Reader
	null            string // rest of a null that is still to be returned
	quoted, escaped bool
}

func (f *finite) Read(p []byte) (n int, err error) {
	for n < len(p) && (n == 0 || f.null != "" || f.in.Buffered() > 0) {
		if f.null == "" {
			c, err := f.in.ReadByte()
			if err != nil {
				return n, err
			}
			switch {
			case f.escaped:
				f.escaped = false
			case f.quoted:
				f.escaped, f.quoted = c == '\\', c != '"'
			case c == '"':
				f.quoted = true
			case c == 'N' && f.skip("aN"), c == 'I' && f.skip("nfinity"), c == '-' && f.skip("I") && f.skip("nfinity"):
				f.null = "null"
				continue
			}
			p[n] = c
		} else {
			p[n], f.null = f.null[0], f.null[1:]
		}
		n++
	}
	return n, nil
}

// skip skips a text if it follows.
func (f *finite) skip(text string) bool {
	if next, _ := f.in.Peek(len(text)); string(next) != text {
		return false
	}
	_, _ = f.in.Discard(len(text)) // it is in the buffer
	return true
}

// JSONMember is a member of an object, or an element of an array, named by its position: "1", "2",
// ...
type JSONMember struct {
	Name  string
	Value json.RawMessage // shares the bytes of the row
}

// ErrNotUTF8 says that a row is not valid UTF-8, so not JSON.
var ErrNotUTF8 = errors.New("it is not valid UTF-8: mend it, or name the encoding of the file")

// JSONMembers returns the members of a row. The row is an object or, with arrays, possibly an array. If several members
// have the same name, the last one counts, as in package encoding/json.
func JSONMembers(row []byte, arrays bool) ([]JSONMember, error) {
	if !utf8.Valid(row) {
		return nil, ErrNotUTF8
	}
	if !json.Valid(row) {
		if row = Finite(row); !json.Valid(row) {
			at, why := notJSON(row)
			return nil, fmt.Errorf("column %d: it is not JSON: %w", at+1, why)
		}
	}
	object := gjson.ParseBytes(row)
	if !object.IsObject() && !(arrays && object.IsArray()) {
		return nil, errors.New("it is not a JSON object")
	}
	var all []JSONMember
	at := map[string]int{}
	object.ForEach(func(key, value gjson.Result) bool {
		name := key.String()
		if object.IsArray() {
			name = strconv.Itoa(len(all) + 1)
		}
		raw := row[value.Index : value.Index+len(value.Raw) : value.Index+len(value.Raw)]
		if i, again := at[name]; again {
			all[i].Value = raw
			return true
		}
		at[name] = len(all)
		all = append(all, JSONMember{name, raw})
		return true
	})
	return all, nil
}

// HoldsRows reports whether a member of an object, which must be valid JSON, is an array of objects
// or of arrays.
func HoldsRows(object []byte) (holds bool) {
	gjson.ParseBytes(object).ForEach(func(_, value gjson.Result) bool {
		first := value.Get("0")
		holds = value.IsArray() && (first.IsObject() || first.IsArray())
		return !holds
	})
	return holds
}

var opening = regexp.MustCompile(`^\[?\s*\{\s*"`)

// HoldsObject reports whether a text begins with an object, alone or in an array. A field of a delimited line may hold
// an object.
func HoldsObject(text []byte) bool {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	first = Finite(bytes.TrimRight(first, ", \t\r"))
	return opening.Match(text) && (len(first) <= len("[{") || json.Valid(first) || json.Valid(append(slices.Clip(first), ']')))
}

// JSONPath leads to a value within a row. It consists of member names separated by points, and positions in arrays,
// which count from 0, as in turns[0].text.
type JSONPath struct {
	first string
	rest  string // a path of gjson
}

var positions = strings.NewReplacer("[", ".", "]", "")

// ParseJSONPath parses a path. A text that is not a path is the name of a member.
func ParseJSONPath(text string) JSONPath {
	first, rest, _ := strings.Cut(positions.Replace(text), ".")
	for _, step := range strings.Split(rest, ".") {
		if rest != "" && step == "" {
			return JSONPath{first: text}
		}
	}
	steps := strings.Split(rest, ".")
	for i, step := range steps {
		steps[i] = gjson.Escape(step)
	}
	return JSONPath{first, strings.Join(steps, ".")}
}

// First returns the first member of a path; empty: the path begins with a position.
func (p JSONPath) First() string { return p.first }

// In returns the value at the rest of the path. value is the value of First, and valid JSON. nil: there is none.
func (p JSONPath) In(value json.RawMessage) json.RawMessage {
	if p.rest == "" {
		return nil
	}
	if found := gjson.GetBytes(value, p.rest); found.Exists() {
		return json.RawMessage(found.Raw)
	}
	return nil
}
