package syntax

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Outline lists the declarations of a file, in the order in which they begin.
type Outline []declaration

// maxLevel bounds the nesting of units inside units.
const maxLevel = 12

// File is a source file that was read.
type File struct {
	*Language
	text  string
	lines []line
}

// Unit is a declaration or a statement, with the comments and attributes directly above it: the bytes from Start up
// to End. Adjacent units leave no gap.
type Unit struct {
	Start, End int
	low, high  int // its lines
	first      int // the first line that is no comment or attribute; high: none
	level      int // number of units around it
}

// Read reads a source file.
func (l *Language) Read(text string) *File {
	return &File{l, text, l.read(text)}
}

// Units returns the units at the top level.
func (f *File) Units() []Unit {
	return f.units(0, len(f.lines), f.shallowest(), 0)
}

// Inside returns the units in a unit's body, which begins with the first of them; nil: there are none.
func (f *File) Inside(u Unit) []Unit {
	first, depth := body(f.lines, u)
	if first == u.high || u.level == maxLevel {
		return nil
	}
	return f.units(first, u.high, depth, u.level+1)
}

// Signature returns the text of a declaration up to its body; "": the unit is no declaration with a body.
func (f *File) Signature(u Unit) string { return f.signature(f.text, f.lines, u) }

func (f *File) units(low, high, depth, level int) []Unit {
	all := units(f.lines, low, high, depth)
	for i := range all {
		all[i].Start, all[i].End, all[i].level = f.lines[all[i].low].start, f.lines[all[i].high-1].end, level
	}
	return all
}

// shallowest returns the least depth of a line with code.
func (f *File) shallowest() int {
	least := -1
	for _, l := range f.lines {
		if l.kind != blank && !l.continues && (least < 0 || l.depth < least) {
			least = l.depth
		}
	}
	return max(0, least)
}

// opens opens the string, character or regular expression at the beginning of rest. It returns how many bytes it
// read; 0: there is none.
func (s *scanner) opens(rest string, i int, last byte) int {
	c := rest[0]
	if s.raw != "" {
		if n := s.opensRaw(rest, i); n > 0 {
			return n
		}
	}
	if s.triple && (c == '"' || c == '\'') && strings.IndexByte(s.quotes, c) >= 0 && strings.HasPrefix(rest, strings.Repeat(string(c), 3)) {
		s.until, s.escapes = rest[:3], true
		return 3
	}
	switch {
	case strings.IndexByte(s.quotes, c) >= 0:
		s.until, s.escapes, s.long = rest[:1], true, false
		return 1
	case s.chars && c == '\'':
		return character(rest, i > 0 && '0' <= s.text[i-1] && s.text[i-1] <= '9')
	case s.template && c == '`':
		s.templates = append(s.templates, -1)
		return 1
	case s.template && c == '/' && (last == 0 || strings.IndexByte("(,=:[!&|?{};+-*%<>~^", last) >= 0):
		return expression(rest)
	}
	return 0
}

// opensRaw opens a raw string.
func (s *scanner) opensRaw(rest string, i int) int {
	word := i > 0 && (s.text[i-1] == '_' || s.text[i-1] >= '0' && s.text[i-1] <= '9' || s.text[i-1]|0x20 >= 'a' && s.text[i-1]|0x20 <= 'z')
	switch c := rest[0]; {
	case c == '`' && s.raw == "`":
		return s.through(rest, "`", 1)
	case c == '@' && s.raw == "@" && strings.HasPrefix(rest, `@"`):
		s.until, s.escapes = `""`, false
		return 2
	case c == 'r' && s.raw == "r" && (!word || s.text[i-1] == 'b'): // Rust
		hashes := len(rest[1:]) - len(strings.TrimLeft(rest[1:], "#"))
		if n := 1 + hashes; n < len(rest) && rest[n] == '"' {
			return s.through(rest, `"`+rest[1:n], n+1)
		}
	case c == 'R' && s.raw == "r" && strings.HasPrefix(rest, `R"`): // C++
		if n := strings.IndexByte(rest[:min(20, len(rest))], '('); n > 0 {
			return s.through(rest, ")"+rest[2:n]+`"`, n+1)
		}
	}
	return 0
}

// through opens a multi-line string that ends at until.
func (s *scanner) through(rest string, until string, n int) int {
	s.until, s.escapes, s.long = "", false, true
	if end := strings.Index(rest[n:], until); end >= 0 {
		return n + end + len(until)
	}
	s.until = until
	return n
}

// character returns the length of a character literal, or 1 for another use of the quote: for a lifetime, or between
// digits.
func character(rest string, digit bool) int {
	if digit || len(rest) < 3 {
		return 1
	}
	if rest[1] == '\\' {
		if end := strings.IndexByte(rest[3:min(13, len(rest))], '\''); end >= 0 {
			return 3 + end + 1
		}
		return 1
	}
	if end := strings.IndexByte(rest[2:min(6, len(rest))], '\''); end >= 0 {
		// 'a, 'b in a list of lifetimes is no literal.
		if n := len([]rune(rest[1 : 2+end])); n == 1 {
			return 2 + end + 1
		}
	}
	return 1
}

// expression returns the length of a regular expression on this line; 0: there is none. It does not recognise long
// ones, so that reading a line takes linear time.
func expression(rest string) int {
	class := false
	for i := 1; i < min(len(rest), 1000); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '\n':
			return 0
		case '/':
			if !class {
				return i + 1
			}
		}
	}
	return 0
}

type declaration struct {
	start, end int
	signature  string
	in         int // index of the declaration around it; -1: none
}

// Outline finds all declarations whose bodies contain others, and the declarations inside them.
func (f *File) Outline() Outline {
	var all Outline
	var add func(units []Unit, in int)
	add = func(units []Unit, in int) {
		for _, u := range units {
			signature, within := f.Signature(u), in
			if signature != "" {
				all = append(all, declaration{u.Start, u.End, signature, in})
				within = len(all) - 1
			}
			if f.Declares(signature) {
				add(f.Inside(u), within)
			}
		}
	}
	add(f.Units(), -1)
	return all
}

// At returns the signatures of the declarations around a byte, the outermost first.
func (o Outline) At(at int) []string {
	n, _ := slices.BinarySearchFunc(o, at, func(d declaration, at int) int {
		if d.start <= at {
			return -1
		}
		return 1
	})
	var path []string
	for n--; n >= 0; n = o[n].in {
		// A unit that ended earlier may be a sibling in the same one.
		if o[n].end > at {
			path = append(path, o[n].signature)
		}
	}
	slices.Reverse(path)
	return path
}

// units finds the units in the lines from low up to high. The first line of each has depth base.
func units(lines []line, low, high, base int) []Unit {
	var all []Unit
	var seen [code + 1]bool // the kinds of lines at depth base in the last unit
	apart := false          // the last unit is a comment, followed by an empty line
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

// body returns the first line of a unit's body and the depth of the units there; first is high if there is no body.
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

// statements are words that begin a statement with a body that is no declaration.
const statements = "if for while switch do else return match try with select case defer go when catch finally unless until loop foreach using lock synchronized elif except import from package throw new await yield use"

// containers are words in signatures of declarations that contain declarations.
const containers = "class struct interface enum trait impl namespace module mod object extension record union extern protocol actor companion describe service message contract"

// signatureLimit is the most bytes of a signature.
const signatureLimit = 160

// isTemplateHead reports whether a line is only the head of a C++ template: template <typename T>.
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

// declares reports whether a line of an indented language begins a declaration, given its first word.
func (l *Language) declares(word string) bool {
	if l.name() == "yaml" {
		return !strings.HasPrefix(word, "-")
	}
	return l.has("def class async module function local defmodule defp struct macro abstract mutable", word) ||
		l.name() == "shell" && strings.HasSuffix(word, "()")
}

// Declares reports whether the units inside a declaration with this signature are declarations, too.
func (l *Language) Declares(signature string) bool {
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
