package enrich

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/fewshot"
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
func (k Expansion) numbers(value any, parts [][]string) bool {
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
func (k Expansion) part(value any) []string {
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

var (
	// item is a line of a list: behind a bullet or a number.
	item = regexp.MustCompile(`^\s*(?:[-*•–+]|\(?\d{1,3}[.):\]]|\[\d{1,3}\])\s+`)
	// heading begins the terms of one of several passages.
	heading = regexp.MustCompile(`(?i)^\W*(?:(?:chunk|passage|text)\s*#?(\d{1,3})\b\W*|[\[(<]?(\d{1,3})[\])>]?\s*:\s*)`)
	// numbered is a line with a number.
	numbered = regexp.MustCompile(`^\W*(\d{1,3})[.)]\s+`)
	// codeFence is a line that begins or ends code.
	codeFence = regexp.MustCompile("(?m)^\\s*```.*$")
)

// maxAnswer is the part of an answer that is read, in characters.
const maxAnswer = 1 << 18

// begins matches the beginning of a line and returns the groups and the rest. Only the
// first characters are matched: expressions are slow, and a line may be long.
func begins(line string, with *regexp.Regexp) (groups []string, rest string) {
	const most = 80
	if groups = with.FindStringSubmatch(fewshot.Clip(line, most)); groups != nil {
		rest = line[len(groups[0]):]
	}
	return groups, rest
}

// list reads the terms of an answer. The last of a truncated one, which may be half a
// term, is left out.
func (k Expansion) list(text string, cut bool) []string {
	text = codeFence.ReplaceAllString(fewshot.Clip(text, maxAnswer), "")
	if found, ok := object(text); ok { // without a truncated text
		return k.part(found.value)
	}
	all := k.lines(text)
	if cut && len(all) > 0 {
		all = all[:len(all)-1]
	}
	return all
}

// lines reads a list in plain text.
func (k Expansion) lines(text string) []string {
	var listed, plain []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m, rest := begins(line, item); m != nil {
			listed = append(listed, rest)
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

// packed reads the terms of n passages; empty for a passage that the answer lacks.
func (k Expansion) packed(text string, n int) [][]string {
	parts := make([][]string, n)
	text = codeFence.ReplaceAllString(fewshot.Clip(text, maxAnswer), "")
	if found, ok := object(text); ok && k.numbers(found.value, parts) {
		return parts
	}
	at, byNumber := -1, 0
	bodies, lines := make([]string, n), make([]string, n)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m, rest := begins(line, heading); m != nil {
			at = index(m[1]+m[2], n)
			line = rest
		} else if m, rest := begins(line, numbered); m != nil {
			if i := index(m[1], n); i >= 0 {
				lines[i] = rest
			}
			byNumber++
		}
		if at >= 0 {
			bodies[at] += line + "\n"
		}
	}
	if strings.Join(bodies, "") == "" && byNumber == n && !k.Sentences { // a line of keywords for each
		bodies = lines
	}
	for i, body := range bodies {
		parts[i] = k.lines(body)
	}
	return parts
}

// index is that of the passage with a number, or -1.
func index(number string, n int) int {
	i, err := strconv.Atoi(number)
	if err != nil || i < 1 || i > n {
		return -1
	}
	return i - 1
}

// clean makes terms of what was read, at most n.
func (k Expansion) clean(items []string, n int) []string {
	asked := func(s string) bool { return strings.ContainsAny(s, "?？؟") }
	only := false // where there is a question, other lines are none
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
