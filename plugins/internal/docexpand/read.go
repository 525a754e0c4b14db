package docexpand

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/fewshot"
)

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
func (k Kind) list(text string, cut bool) []string {
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
func (k Kind) lines(text string) []string {
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
func (k Kind) packed(text string, n int) [][]string {
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
func (k Kind) clean(items []string, n int) []string {
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
