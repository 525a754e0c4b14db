package syntax

import "strings"

// opens opens the string, character or regular expression at the beginning of rest and
// returns the length that it read; 0: there is none.
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

// through opens a string of many lines, up to until.
func (s *scanner) through(rest string, until string, n int) int {
	s.until, s.escapes, s.long = "", false, true
	if end := strings.Index(rest[n:], until); end >= 0 {
		return n + end + len(until)
	}
	s.until = until
	return n
}

// character is the length of a character literal, or 1 for another quote: of a lifetime,
// or between digits.
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

// expression is the length of a regular expression on this line; 0: there is none. Long
// ones are not recognised, so that reading a line stays linear.
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
