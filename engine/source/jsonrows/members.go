package jsonrows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"unicode/utf8"
)

// Member is a member of an object, or an element of an array, which is named by its
// position: "1", "2", ...
type Member struct {
	Name  string
	Value json.RawMessage // a part of the row
}

// ErrNotUTF8 says that a row is no JSON because its bytes are no text.
var ErrNotUTF8 = errors.New("it is not valid UTF-8: mend it, or name the encoding of the file")

// Members appends to all the members of a row, which is an object or, where arrays says so,
// an array. Of two members of a name the last one counts, as in package encoding/json.
func Members(all []Member, row []byte, arrays bool) ([]Member, error) {
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
			all = append(all, Member{strconv.Itoa(len(all) + 1), value})
		}
		return all, nil
	case row[0] != '{':
		return all, errors.New("it is not a JSON object")
	}
	for key, value := range members(row) {
		all = append(all, Member{text(key), value})
	}
	return distinct(all), nil
}

// HoldsRows reports whether a member of an object, which is valid JSON, is an array of objects
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

// distinct drops all but the last of members of one name.
func distinct(all []Member) []Member {
	if len(all) > 32 { // each is compared with each
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

// text is what a string that is written in valid JSON reads.
func text(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it is valid
	return s
}

// members are the members of an object that is valid JSON, with their names in quotes.
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

// elements are those of an array that is valid JSON.
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

// skip is where white space ends.
func skip(text []byte, at int) int {
	for text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r' {
		at++
	}
	return at
}

// valueEnd is where a value ends that begins at a place of valid JSON.
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

// stringEnd is where a string ends that opens at a place of valid JSON.
func stringEnd(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}
