package jsonrows

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Path leads to a value within a row: member names that are separated by points, and
// positions in arrays, which count from 0, as in turns[0].text.
type Path []step

// step is one of a path.
type step struct {
	name  string
	index int // of an array; -1: it is a member
}

// ParsePath reads a path. A text that is none is the name of a member.
func ParsePath(text string) Path {
	var p Path
	for part := range strings.SplitSeq(text, ".") {
		name, rest, _ := strings.Cut(part, "[")
		if name != "" || part == "" {
			p = append(p, step{name, -1})
		}
		for rest != "" {
			number, more, closed := strings.Cut(rest, "]")
			index, err := strconv.Atoi(number)
			if !closed || err != nil || index < 0 || more != "" && more[0] != '[' {
				return Path{{text, -1}}
			}
			p = append(p, step{"", index})
			rest = strings.TrimPrefix(more, "[")
		}
	}
	return p
}

// First is the member that a path begins with; empty: it begins with a position.
func (p Path) First() string { return p[0].name }

// Rest is what follows First.
func (p Path) Rest() Path { return p[1:] }

// In returns the value to which a path leads in one that is valid JSON; nil: there is none.
func (p Path) In(value json.RawMessage) json.RawMessage {
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
		if text(key) == s.name {
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
