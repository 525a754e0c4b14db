package rows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSONMember is a member of an object, or an element of an array, named by its position: "1", "2",
// ...
type JSONMember struct {
	Name  string
	Value json.RawMessage // shares the bytes of the row
}

// ErrNotUTF8 says that a row is not valid UTF-8, so not JSON.
var ErrNotUTF8 = errors.New("it is not valid UTF-8: mend it, or name the encoding of the file")

// JSONMembers appends the members of a row to all. The row is an object or, with arrays, possibly
// an array. Of members with the same name the last one counts, as in package encoding/json.
func JSONMembers(all []JSONMember, row []byte, arrays bool) ([]JSONMember, error) {
	whole := row
	row = bytes.TrimSpace(row)
	switch {
	case !utf8.Valid(row):
		return all, ErrNotUTF8
	case !json.Valid(row):
		var syntax *json.SyntaxError
		if err := json.Unmarshal(whole, new(json.RawMessage)); errors.As(err, &syntax) {
			return all, fmt.Errorf("column %d: it is not JSON: %w", syntax.Offset, err)
		}
		return all, errors.New("it is not JSON")
	case row[0] == '[' && arrays:
		for value := range elements(row) {
			all = append(all, JSONMember{strconv.Itoa(len(all) + 1), value})
		}
		return all, nil
	case row[0] != '{':
		return all, errors.New("it is not a JSON object")
	}
	for key, value := range members(row) {
		all = append(all, JSONMember{memberText(key), value})
	}
	return distinct(all), nil
}

// HoldsRows reports whether a member of an object, which must be valid JSON, is an array of objects
// or of arrays.
func HoldsRows(object []byte) bool {
	for _, value := range members(object[skip(object, 0):]) {
		if value[0] == '[' {
			if c := value[skip(value, 1)]; c == '{' || c == '[' {
				return true
			}
		}
	}
	return false
}

// distinct keeps the last of members with the same name.
func distinct(all []JSONMember) []JSONMember {
	if len(all) > 32 { // few members are compared pairwise below
		seen := make(map[string]int, len(all))
		kept := all[:0]
		for _, m := range all {
			if at, ok := seen[m.Name]; ok {
				kept[at].Value = m.Value
				continue
			}
			seen[m.Name] = len(kept)
			kept = append(kept, m)
		}
		return kept
	}
	kept := all[:0]
next:
	for _, m := range all {
		for i := range kept {
			if kept[i].Name == m.Name {
				kept[i].Value = m.Value
				continue next
			}
		}
		kept = append(kept, m)
	}
	return kept
}

// memberText returns the text of a string in valid JSON.
func memberText(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it is valid
	return s
}

// members yields the members of an object in valid JSON, with their names in quotes.
func members(object []byte) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func([]byte, json.RawMessage) bool) {
		for at := skip(object, 1); object[at] != '}'; {
			end := valueEnd(object, at)
			key := object[at:end]
			at = skip(object, skip(object, end)+1) // beyond the colon
			end = valueEnd(object, at)
			if !yield(key, object[at:end:end]) {
				return
			}
			if at = skip(object, end); object[at] == ',' {
				at = skip(object, at+1)
			}
		}
	}
}

// elements yields the elements of an array in valid JSON.
func elements(array []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		for at := skip(array, 1); array[at] != ']'; {
			end := valueEnd(array, at)
			if !yield(array[at:end:end]) {
				return
			}
			if at = skip(array, end); array[at] == ',' {
				at = skip(array, at+1)
			}
		}
	}
}

// skip returns the end of white space.
func skip(text []byte, at int) int {
	for text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r' {
		at++
	}
	return at
}

// valueEnd returns the end of a value in valid JSON, from its first byte.
func valueEnd(text []byte, at int) int {
	depth := 0
	for {
		switch text[at] {
		case '"':
			at = stringEnd(text, at)
			if depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		default:
			if depth > 0 {
				break
			}
			for at < len(text) && bytes.IndexByte([]byte(",]} \n\t\r"), text[at]) < 0 {
				at++
			}
			return at
		}
		at++
	}
}

// stringEnd returns the end of a string in valid JSON, from its opening quote.
func stringEnd(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// JSONPath leads to a value within a row: member names separated by points, and positions in
// arrays, which count from 0, as in turns[0].text.
type JSONPath []step

// step is a step of a path.
type step struct {
	name  string
	index int // position in an array; -1: a member
}

// ParseJSONPath parses a path. A text that is no path is the name of a member.
func ParseJSONPath(text string) JSONPath {
	var p JSONPath
	for part := range strings.SplitSeq(text, ".") {
		name, rest, _ := strings.Cut(part, "[")
		if name != "" || part == "" {
			p = append(p, step{name, -1})
		}
		for rest != "" {
			number, more, closed := strings.Cut(rest, "]")
			index, err := strconv.Atoi(number)
			if !closed || err != nil || index < 0 || more != "" && more[0] != '[' {
				return JSONPath{{text, -1}}
			}
			p = append(p, step{"", index})
			rest = strings.TrimPrefix(more, "[")
		}
	}
	return p
}

// First returns the member that a path begins with; empty: it begins with a position.
func (p JSONPath) First() string { return p[0].name }

// Rest returns the path after First.
func (p JSONPath) Rest() JSONPath { return p[1:] }

// In returns the value at a path in a value of valid JSON; nil: there is none.
func (p JSONPath) In(value json.RawMessage) json.RawMessage {
	for _, s := range p {
		if len(value) == 0 {
			return nil
		}
		if s.index < 0 {
			value = s.member(value)
		} else {
			value = s.element(value)
		}
	}
	return value
}

func (s step) member(object json.RawMessage) (found json.RawMessage) {
	if object[0] != '{' {
		return nil
	}
	for key, value := range members(object) {
		if memberText(key) == s.name {
			found = value
		}
	}
	return found
}

func (s step) element(array json.RawMessage) json.RawMessage {
	if array[0] != '[' {
		return nil
	}
	n := 0
	for value := range elements(array) {
		if n == s.index {
			return value
		}
		n++
	}
	return nil
}
