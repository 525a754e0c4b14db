package docexpand

import (
	"encoding/json"
	"regexp"
	"strings"
)

// found is a JSON value in an answer: a string, a number, a list or an object; nil for
// others. Whole is false for a truncated value, of which the beginning counts.
type found struct {
	value any
	whole bool
}

// pairs are the properties of an object, in their order.
type pairs []pair

type pair struct {
	key   string
	value found
}

// opening is where a list or an object may begin: at the beginning of a line.
var opening = regexp.MustCompile(`(?m)^\s*[\[{]`)

// object reads the first list or object of a text that holds a string.
func object(text string) (found, bool) {
	const maxObjects = 8
	for range maxObjects {
		m := opening.FindStringIndex(text)
		if m == nil {
			break
		}
		d := json.NewDecoder(strings.NewReader(text[m[1]-1:]))
		if f := read(d, 0); len(texts(f.value)) > 0 {
			return f, true
		}
		text = text[m[1]:]
	}
	return found{}, false
}

// maxDepth bounds the nesting of values.
const maxDepth = 6

func read(d *json.Decoder, depth int) found {
	token, err := d.Token()
	if err != nil || depth > maxDepth {
		return found{}
	}
	switch token := token.(type) {
	case string, float64:
		return found{token, true}
	case json.Delim:
		if token == '[' {
			return list(d, depth)
		}
		return fields(d, depth)
	}
	return found{nil, true}
}

func list(d *json.Decoder, depth int) found {
	all := []found{}
	for d.More() {
		f := read(d, depth+1)
		if f.value != nil {
			all = append(all, f)
		}
		if !f.whole {
			return found{all, false}
		}
	}
	_, err := d.Token()
	return found{all, err == nil}
}

func fields(d *json.Decoder, depth int) found {
	all := pairs{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return found{all, false}
		}
		f := read(d, depth+1)
		if f.value != nil {
			name, _ := key.(string) // it always is one
			all = append(all, pair{name, f})
		}
		if !f.whole {
			return found{all, false}
		}
	}
	_, err := d.Token()
	return found{all, err == nil}
}

// texts are all the strings in a value, in order.
func texts(value any) (all []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []found:
		for _, f := range v {
			all = append(all, texts(f.value)...)
		}
	case pairs:
		for _, p := range v {
			all = append(all, texts(p.value.value)...)
		}
	}
	return all
}

// numbers fills in the parts that a value numbers, and reports whether there are any:
// {"1": [...]}, [{"chunk": 1, "keywords": [...]}], or as many lists as there are parts.
// Truncated values are left out.
func (k Kind) numbers(value any, parts [][]string) bool {
	switch v := value.(type) {
	case pairs:
		any := false
		for _, p := range v {
			if i := index(digits(p.key), len(parts)); i >= 0 && p.value.whole {
				parts[i], any = k.part(p.value.value), true
			}
		}
		return any || len(v) == 1 && k.numbers(v[0].value.value, parts)
	case []found:
		any := false
		for i, f := range v {
			switch of := f.value.(type) {
			case pairs:
				for _, p := range of {
					number, ok := p.value.value.(float64)
					if ok && number >= 1 && number <= float64(len(parts)) && f.whole {
						parts[int(number)-1], any = k.part(of), true
					}
				}
			case []found:
				if len(v) == len(parts) && f.whole {
					parts[i], any = k.part(of), true
				}
			}
		}
		return any
	}
	return false
}

// part returns the terms in a value. A single text may hold them all.
func (k Kind) part(value any) []string {
	all := texts(value)
	if len(all) == 1 {
		return k.lines(all[0])
	}
	return all
}

// digits is the number in a name such as "chunk 2".
func digits(name string) string {
	return strings.TrimFunc(name, func(r rune) bool { return r < '0' || r > '9' })
}
