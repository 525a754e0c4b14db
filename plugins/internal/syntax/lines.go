package syntax

import "strings"

// kind is that of a line.
type kind uint8

const (
	blank kind = iota
	comment
	attribute // an annotation or decorator on a line of its own
	code
)

// line is one of a source file.
type line struct {
	start, end int // with its end
	kind       kind
	depth      int  // brackets around its beginning, or columns that it is indented
	continues  bool // it belongs to the unit of the line above
}

// read reads the lines of a source file.
func (l *Language) read(text string) []line {
	s := scanner{Language: l, text: text}
	for _, c := range []byte("()[]{}'`/" + l.quotes + strings.ReplaceAll(l.comments, " ", "") + l.raw + strings.ToUpper(l.raw)) {
		s.special[c] = true
	}
	for s.at < len(text) {
		s.line()
	}
	if l.indented {
		indentComments(s.lines)
	}
	return s.lines
}

// indentComments gives comments the depth of the line below, where that is deeper: code
// that is commented out inside a block is often not indented.
func indentComments(lines []line) {
	below := 0
	for i := len(lines) - 1; i >= 0; i-- {
		switch l := &lines[i]; {
		case l.kind == comment && !l.continues:
			l.depth = max(l.depth, below)
		case l.kind != blank && !l.continues:
			below = l.depth
		}
	}
}

// line reads one line.
func (s *scanner) line() {
	end := len(s.text)
	if i := strings.IndexByte(s.text[s.at:], '\n'); i >= 0 {
		end = s.at + i + 1
	}
	trimmed := strings.TrimSpace(s.text[s.at:end])
	l := line{start: s.at, end: end, kind: code, depth: s.depth}
	inside := s.until != "" || len(s.templates) > 0
	switch {
	case trimmed == "":
		l.kind, l.continues = blank, true
	case inside:
		l.continues = true
		if s.inComment {
			l.kind = comment
		}
	case s.directive || s.continued:
		l.continues = true
	case s.isComment(trimmed):
		l.kind, l.continues = comment, s.unfinished && !s.indented
	default:
		l.continues = s.unfinished && !s.indented || s.follows(trimmed)
		if s.isAttribute(trimmed) && !l.continues {
			l.kind = attribute
		}
	}
	if s.indented {
		if s.depth > 0 {
			l.continues = true
		}
		l.depth = indentation(s.text[s.at:end])
	}
	if s.annotation && l.kind == code {
		l.kind, l.continues = attribute, true
	}
	isAttribute := l.kind == attribute
	before := s.depth
	s.scan(l, trimmed)
	switch {
	case isAttribute && !s.annotation:
		s.annotation, s.outside = s.depth > before, before
	case s.annotation:
		s.annotation = s.depth > s.outside
	}
	if isAttribute && !s.annotation {
		s.unfinished = false
	}
	s.at = end
	s.lines = append(s.lines, l)
}

// indentation is the width of a line's white space, with tabs to every eighth
// column.
func indentation(text string) int {
	n := 0
	for _, c := range text {
		switch c {
		case ' ':
			n++
		case '\t':
			n = n/8*8 + 8
		default:
			return n
		}
	}
	return n
}

// isComment reports whether a line is nothing but a comment.
func (s *scanner) isComment(line string) bool {
	if s.block != "" && strings.HasPrefix(line, s.block) {
		return !strings.Contains(line, "*/") || strings.HasSuffix(line, "*/")
	}
	for mark := range strings.FieldsSeq(s.comments) {
		if strings.HasPrefix(line, mark) && !strings.HasPrefix(line, "#[") {
			return true
		}
	}
	return false
}

// isAttribute reports whether a line is nothing but attributes or annotations.
func (s *scanner) isAttribute(line string) bool {
	switch {
	case line[0] == '@' && s.indented:
		return true
	case line[0] == '@':
		return alone(strings.TrimLeft(line[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:"))
	case strings.HasPrefix(line, "#[") || line[0] == '[' && s.has("csharp", s.name()):
		return strings.HasSuffix(line, "]")
	}
	return false
}

// alone reports whether only arguments are behind the name of an annotation.
func alone(arguments string) bool {
	if arguments == "" || arguments[0] != '(' {
		return arguments == ""
	}
	open := 0
	for i, c := range arguments {
		switch c {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				return i == len(arguments)-1
			}
		}
	}
	return true
}

func (l *Language) name() string {
	name, _, _ := strings.Cut(l.names, " ")
	return name
}

// follows reports whether a line continues the statement above, whatever that ends in.
func (s *scanner) follows(line string) bool {
	word := line
	if i := strings.IndexFunc(line, func(r rune) bool { return r == ' ' || r == '(' || r == ':' || r == '{' || r == '\t' || r == ';' }); i > 0 {
		word = line[:i]
	}
	if s.indented {
		return s.has(s.closers, word) || strings.ContainsRune(")]", rune(line[0]))
	}
	if strings.ContainsRune(")]}", rune(line[0])) || s.has("else catch finally", word) {
		return true
	}
	return !s.semicolons && (strings.ContainsRune(".?:&|=", rune(line[0])) || line == "{")
}
