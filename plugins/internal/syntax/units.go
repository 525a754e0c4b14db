package syntax

import (
	"strings"
	"unicode/utf8"
)

// units finds the units in the lines from low up to high whose first line has
// depth base.
func units(lines []line, low, high, base int) []Unit {
	var all []Unit
	var seen [code + 1]bool // the kinds of lines at base in the last unit
	apart := false          // the last unit is a comment with an empty line below
	for i := low; i < high; i++ {
		l := lines[i]
		last := len(all) - 1
		inside := l.kind == blank || l.continues || l.depth != base
		switch {
		case last >= 0 && inside:
			if all[last].high = i + 1; l.kind == blank {
				apart = seen[comment] && !seen[attribute]
			}
		case last >= 0 && !seen[code] && !apart:
			all[last].high = i + 1
		default:
			all = append(all, Unit{low: i, high: i + 1, first: high})
			last, seen, apart = last+1, [code + 1]bool{}, false
		}
		if l.kind == code && all[last].first == high {
			all[last].first = i
		}
		seen[l.kind] = seen[l.kind] || !inside || l.kind == code
	}
	for i := range all {
		all[i].first = min(all[i].first, all[i].high)
	}
	return all
}

// body finds the first line of a unit's body and the depth of its units; first is high
// where there is none.
func body(lines []line, u Unit) (first, depth int) {
	first, depth = u.high, 0
	if u.first == u.high {
		return first, depth
	}
	for i := u.first + 1; i < u.high; i++ {
		l := lines[i]
		if l.kind == blank || l.continues || l.depth <= lines[u.first].depth {
			continue
		}
		if first == u.high || l.depth < depth {
			if first == u.high {
				first = i
			}
			depth = l.depth
		}
	}
	return first, depth
}

// statements are words that begin statements with a body and no declaration.
const statements = "if for while switch do else return match try with select case defer go when catch finally unless until loop foreach using lock synchronized elif except import from package throw new await yield use"

// containers are words of signatures whose bodies hold declarations.
const containers = "class struct interface enum trait impl namespace module mod object extension record union extern protocol actor companion describe service message contract"

// signatureLimit is the length of a signature in bytes.
const signatureLimit = 160

// isTemplateHead reports whether a line is nothing but the head of a C++ template:
// template <typename T>.
func isTemplateHead(line string) bool {
	rest, found := strings.CutPrefix(line, "template")
	return found && strings.HasPrefix(strings.TrimSpace(rest), "<") && strings.HasSuffix(rest, ">")
}

// signature implements File.Signature.
func (l *Language) signature(text string, lines []line, u Unit) string {
	var words []string
	size, open, body := 0, 0, false
	for i := u.first; i < min(u.high, u.first+8) && size < signatureLimit && !body; i++ {
		part := strings.TrimSpace(text[lines[i].start:lines[i].end])
		if lines[i].kind != code || size == 0 && isTemplateHead(part) {
			continue
		}
		switch {
		case l.indented:
			open += strings.Count(part, "(") - strings.Count(part, ")")
			body = open <= 0
			part = strings.TrimSuffix(part, ":")
		case strings.HasSuffix(part, "{"):
			part, body = part[:len(part)-1], true
		case strings.Contains(part, "{"):
			part, body = part[:strings.IndexByte(part, '{')], true
		case strings.HasSuffix(part, ";"):
			return ""
		}
		words = append(words, strings.Fields(part)...)
		size += len(part)
	}
	if !body || len(words) == 0 || words[0][0] == '(' || l.has(statements, strings.TrimRight(words[0], "(:")) || l.indented && !l.declares(words[0]) {
		return ""
	}
	all := strings.Join(words, " ")
	if value := strings.Index(all, " ="); value > 0 && !strings.Contains(all[:value], "(") && !l.indented && !strings.Contains(all, "= class") {
		all = all[:value] // const f = () => ...
	}
	return shorten(strings.TrimRight(all, " ,"), signatureLimit)
}

// declares reports whether a line of an indented language begins a declaration, by its
// first word.
func (l *Language) declares(word string) bool {
	if l.name() == "yaml" {
		return !strings.HasPrefix(word, "-")
	}
	return l.has("def class async module function local defmodule defp struct macro abstract mutable", word) ||
		l.name() == "shell" && strings.HasSuffix(word, "()")
}

// holds reports whether the body of a declaration has declarations.
func (l *Language) holds(signature string) bool {
	if l.name() == "yaml" {
		return true
	}
	if i := strings.IndexByte(signature, '('); i >= 0 {
		signature = signature[:i]
	}
	for word := range strings.FieldsSeq(signature) {
		if l.has(containers+" defmodule", strings.TrimRight(word, "<:")) || strings.HasPrefix(word, "impl<") {
			return true
		}
	}
	return false
}

// shorten cuts s to a number of bytes, at a character.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
