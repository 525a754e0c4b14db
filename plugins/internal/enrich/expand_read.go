package enrich

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/plugins/internal/fewshot"
)

// opening matches the possible beginning of a list or an object: at the beginning of a line.
var opening = regexp.MustCompile(`(?m)^\s*[\[{]`)

// object returns the first list or object of a text that contains a string. It ends where the JSON is truncated or
// invalid.
func object(text string) (value gjson.Result, found bool) {
	const maxObjects = 8
	for range maxObjects {
		m := opening.FindStringIndex(text)
		if m == nil {
			break
		}
		text = text[m[1]-1:]
		end := len(text)
		d := json.NewDecoder(strings.NewReader(text))
		wrong := new(json.SyntaxError)
		switch err := d.Decode(new(json.RawMessage)); {
		case err == nil:
			end = int(d.InputOffset())
		case errors.As(err, &wrong):
			end = max(int(wrong.Offset)-1, 1)
		}
		if value = gjson.Parse(text[:end]); len(texts(value, 0)) > 0 {
			return value, true
		}
		text = text[1:]
	}
	return gjson.Result{}, false
}

// maxDepth bounds the nesting of values.
const maxDepth = 6

// texts returns all strings in a value, in order, except a truncated one.
func texts(value gjson.Result, depth int) (all []string) {
	switch {
	case value.Type == gjson.String && gjson.Valid(value.Raw):
		return []string{value.Str}
	case value.Type == gjson.JSON && depth < maxDepth:
		value.ForEach(func(_, v gjson.Result) bool {
			all = append(all, texts(v, depth+1)...)
			return true
		})
	}
	return all
}

// numbers fills in parts from an object with numbers as names, {"1": [...]}. It skips truncated values.
func (k expansion) numbers(value gjson.Result, parts [][]string) {
	value.ForEach(func(name, v gjson.Result) bool {
		if i := index(digits(name.Str), len(parts)); i >= 0 && gjson.Valid(v.Raw) {
			parts[i] = k.part(v)
		}
		return true
	})
}

// part returns the terms in a value. A single text may contain all of them.
func (k expansion) part(value gjson.Result) []string {
	all := texts(value, 0)
	if len(all) == 1 {
		return k.lines(all[0])
	}
	return all
}

// digits returns the number in a name such as "chunk 2".
func digits(name string) string {
	return strings.TrimFunc(name, func(r rune) bool { return r < '0' || r > '9' })
}

var (
	// item matches the bullet or number of a line in a list.
	item = regexp.MustCompile(`^\s*(?:[-*•–+]|\(?\d{1,3}[.):\]]|\[\d{1,3}\])\s+`)
	// codeFence matches a line that begins or ends code.
	codeFence = regexp.MustCompile("(?m)^\\s*```.*$")
)

const (
	maxAnswer = 1 << 18 // characters of an answer to read
	maxMark   = 80      // characters of a line to search for a bullet or number: expressions are slow, and a line may be long
)

// list reads the terms of an answer. If the answer is truncated, it drops the last term, which may be incomplete.
func (k expansion) list(text string, cut bool) []string {
	text = codeFence.ReplaceAllString(fewshot.Clip(text, maxAnswer), "")
	if value, ok := object(text); ok {
		return k.part(value)
	}
	all := k.lines(text)
	if cut && len(all) > 0 {
		all = all[:len(all)-1]
	}
	return all
}

// lines reads a list in plain text.
func (k expansion) lines(text string) []string {
	var listed, plain []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if mark := item.FindString(fewshot.Clip(line, maxMark)); mark != "" {
			listed = append(listed, line[len(mark):])
		}
		if line == "" || strings.HasSuffix(line, ":") { // an introduction
			continue
		}
		if name, rest, ok := strings.Cut(line, ":"); ok && strings.EqualFold(strings.Trim(name, "*# "), k.Name) {
			line = rest
		}
		plain = append(plain, line)
	}
	switch {
	case len(listed) > 1 || len(listed) == 1 && k.Sentences:
		return listed
	case len(listed) == 1:
		plain = listed
	}
	if k.Sentences {
		return plain
	}
	var all []string
	for _, line := range plain {
		all = append(all, strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(",;|、，；", r) })...)
	}
	return all
}

// packed reads the terms of n passages from the requested object. A list is empty if the answer lacks the passage.
func (k expansion) packed(text string, n int) [][]string {
	parts := make([][]string, n)
	text = codeFence.ReplaceAllString(fewshot.Clip(text, maxAnswer), "")
	if value, ok := object(text); ok && value.IsObject() {
		k.numbers(value, parts)
		value.ForEach(func(_, inside gjson.Result) bool { // the object may be the value of the only property
			if inside.IsObject() {
				k.numbers(inside, parts)
			}
			return false
		})
	}
	return parts
}

// index returns the index of the passage with a number, or -1.
func index(number string, n int) int {
	i, err := strconv.Atoi(number)
	if err != nil || i < 1 || i > n {
		return -1
	}
	return i - 1
}

// clean converts items to at most n terms.
func (k expansion) clean(items []string, n int) []string {
	asked := func(s string) bool { return strings.ContainsAny(s, "?？؟") }
	only := false // if there is a question, other lines are no terms
	for _, s := range items {
		only = only || k.Sentences && asked(s)
	}
	var terms []string
	seen := map[string]bool{}
	for _, s := range items {
		s = fewshot.OneLine(strings.ReplaceAll(s, "**", ""))
		s = strings.TrimSpace(strings.Trim(s, "\"'`*“”„«»_,;"))
		if !k.Sentences {
			s = strings.TrimRight(s, ".")
		}
		folded := strings.ToLower(s)
		if !fewshot.HasWord(s) ||
			utf8.RuneCountInString(s) > k.Characters || seen[folded] || only && !asked(s) {
			continue
		}
		seen[folded] = true
		if terms = append(terms, s); len(terms) == n {
			break
		}
	}
	return terms
}
