package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// This file reads the long lists of a tokenizer.json, vocabularies and merges, element by element. Package
// encoding/json would build the whole list before anybody could count it. A small file could then take much memory,
// and reading would take twice the time.
//
// The input is JSON that encoding/json has checked, a json.RawMessage. This file does not check it again.

// eachElement calls f with each element of an array. For an object, it calls f with each member, including name and
// colon. It stops at the first error of f.
func eachElement(raw json.RawMessage, f func(element []byte) error) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) < 2 || raw[0] != '[' && raw[0] != '{' {
		return fmt.Errorf("%.40s is neither an array nor an object", raw)
	}
	inside := raw[1 : len(raw)-1]
	start, depth := 0, 0
	for i := 0; i < len(inside); i++ {
		switch inside[i] {
		case '"':
			i += stringLen(inside[i:]) - 1
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth > 0 {
				continue
			}
			if err := f(bytes.TrimSpace(inside[start:i])); err != nil {
				return err
			}
			start = i + 1
		}
	}
	if last := bytes.TrimSpace(inside[start:]); len(last) > 0 {
		return f(last)
	}
	return nil
}

// stringLen returns the length of the string at the beginning of s, including its quotes.
func stringLen(s []byte) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// elementOf splits a member of an object into name and value.
func elementOf(member []byte) (name string, value []byte, err error) {
	n := stringLen(member)
	name, err = stringOf(member[:n])
	return name, bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(member[n:]), []byte(":"))), err
}

// stringOf decodes an element that is a string.
func stringOf(element []byte) (string, error) {
	if len(element) > 0 && element[0] == '"' && stringLen(element) == len(element) && bytes.IndexByte(element, '\\') < 0 && utf8.Valid(element) {
		return string(element[1 : len(element)-1]), nil
	}
	var s *string
	if err := json.Unmarshal(element, &s); err != nil || s == nil {
		return "", fmt.Errorf("%.40s is not a string", element)
	}
	return *s, nil
}

const (
	maxID     = 1<<24 - 1 // bounds the size of lists by id
	maxTokens = 1 << 21   // and merges, far more than the largest models have
)

// readIDs reads tokens with their ids, which must differ. size is the highest id plus one.
func readIDs(raw json.RawMessage) (ids map[string]int32, size int, err error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, 0, errors.New("vocab is not an object of tokens and ids")
	}
	ids = map[string]int32{}
	err = eachElement(raw, func(member []byte) error {
		token, value, err := elementOf(member)
		if err != nil {
			return err
		}
		id, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || id < 0 || id > maxID {
			return fmt.Errorf("token %.40q has the impossible id %.40s; ids are whole numbers from 0 to %d", token, value, maxID)
		}
		if ids[token] = int32(id); len(ids) > maxTokens {
			return fmt.Errorf("it has more than %d tokens", maxTokens)
		}
		size = max(size, int(id)+1)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	taken := make([]string, size)
	for token, id := range ids {
		if other := taken[id]; other != "" {
			return nil, 0, fmt.Errorf("tokens %.40q and %.40q have the same id %d", min(token, other), max(token, other), id)
		}
		taken[id] = token
	}
	return ids, size, nil
}
