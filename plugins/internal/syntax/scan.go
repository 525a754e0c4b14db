package syntax

import "strings"

// scanner follows brackets, strings and comments from line to line.
type scanner struct {
	*Language
	text    string
	at      int
	lines   []line
	special [256]bool // characters that may begin more than themselves

	depth      int
	until      string // ends the open comment or string
	inComment  bool
	nesting    int   // of comments
	long       bool  // the string may have many lines
	escapes    bool  // a backslash in the string takes the next character with it
	templates  []int // depths at which the ${ of templates are open, -1: in the text of one
	annotation bool  // inside the arguments of an annotation
	outside    int   // the depth at which it began
	unfinished bool  // the statement has not ended
	directive  bool  // the line of the preprocessor ends in a backslash
	continued  bool  // the line above ends in a backslash
	branches   []int // depths at the #if that are open
}

// scan reads the code of a line.
func (s *scanner) scan(l line, trimmed string) {
	if trimmed == "" && s.until == "" {
		s.directive, s.continued = false, false
		return
	}
	if s.directives && s.until == "" && (s.directive || trimmed[0] == '#') {
		if !s.directive {
			s.branch(trimmed)
		}
		s.directive = strings.HasSuffix(trimmed, `\`)
		return
	}
	last, hadCode := byte(0), false
	for i := l.start; i < l.end; {
		n, isCode := s.step(i, l.end, last)
		if c := s.text[i]; isCode && c > ' ' {
			last, hadCode = c, true
			if n > 1 {
				last = s.text[i+n-1]
			}
		}
		i += n
	}
	if len(s.until) == 1 && !s.long {
		s.until = ""
	}
	if hadCode {
		s.unfinished = !s.ends(strings.TrimRight(s.text[l.start:l.end], " \t\r\n"), last)
		s.continued = s.indented && last == '\\'
	}
}

// branch lets every branch of a condition begin at the depth of the first.
func (s *scanner) branch(line string) {
	word := strings.TrimLeft(line[1:], " \t")
	n := len(s.branches)
	switch {
	case strings.HasPrefix(word, "if"):
		s.branches = append(s.branches, s.depth)
	case strings.HasPrefix(word, "el") && n > 0:
		s.depth = s.branches[n-1]
	case strings.HasPrefix(word, "endif") && n > 0:
		s.branches = s.branches[:n-1]
	}
}

// ends reports whether a line whose last character of code is last ends a statement.
func (s *scanner) ends(line string, last byte) bool {
	if last == '{' || last == '(' || last == '[' { // what is inside begins anew
		return true
	}
	if s.semicolons {
		return last == ';' || last == '}' || last == ':' || strings.HasSuffix(line, "<?php") || strings.HasSuffix(line, "?>")
	}
	if last == '>' {
		return !strings.HasSuffix(line, "=>") && !strings.HasSuffix(line, "->")
	}
	return !strings.ContainsRune(",=+-*/%&|<?:.\\", rune(last)) || strings.HasSuffix(line, "++") || strings.HasSuffix(line, "--")
}

// step reads what is at i and returns its length, and whether it is code.
func (s *scanner) step(i, end int, last byte) (int, bool) {
	rest := s.text[i:end]
	switch {
	case s.inComment:
		return s.comment(rest), false
	case s.until != "":
		return s.inString(rest), true
	case len(s.templates) > 0 && s.templates[len(s.templates)-1] < 0:
		return s.inTemplate(rest), true
	}
	if !s.special[rest[0]] {
		return 1, true
	}
	for mark := range strings.FieldsSeq(s.comments) {
		if strings.HasPrefix(rest, mark) && !strings.HasPrefix(rest, "#[") && (mark != "#" || i == 0 || s.text[i-1] <= ' ') {
			return len(rest), false
		}
	}
	if s.block != "" && strings.HasPrefix(rest, s.block) {
		s.inComment, s.until, s.nesting = true, "*/", 1
		return 2, false
	}
	if n := s.opens(rest, i, last); n > 0 {
		return n, true
	}
	switch c := rest[0]; c {
	case '(', '[', '{':
		if !s.indented || s.quotes != "" {
			s.depth++
		}
	case ')', ']', '}':
		if n := len(s.templates); n > 0 && c == '}' && s.templates[n-1] == s.depth {
			s.templates = s.templates[:n-1]
			break
		}
		s.depth = max(0, s.depth-1)
	}
	return 1, true
}

// comment reads the next bytes of a comment.
func (s *scanner) comment(rest string) int {
	switch {
	case strings.HasPrefix(rest, "*/"):
		if s.nesting--; s.nesting == 0 {
			s.inComment, s.until = false, ""
		}
		return 2
	case s.nested && strings.HasPrefix(rest, "/*"):
		s.nesting++
		return 2
	}
	return 1
}

// inString reads the next bytes of a string.
func (s *scanner) inString(rest string) int {
	if s.escapes && rest[0] == '\\' && len(rest) > 1 {
		return 2
	}
	if s.until == `""` { // C#: two quotes are one in the string
		switch {
		case strings.HasPrefix(rest, `""`):
			return 2
		case rest[0] == '"':
			s.until = ""
		}
		return 1
	}
	if strings.HasPrefix(rest, s.until) {
		n := len(s.until)
		s.until = ""
		return n
	}
	return 1
}

// inTemplate reads the next bytes of a template's text.
func (s *scanner) inTemplate(rest string) int {
	switch {
	case rest[0] == '\\' && len(rest) > 1:
		return 2
	case rest[0] == '`':
		s.templates = s.templates[:len(s.templates)-1]
	case strings.HasPrefix(rest, "${"):
		s.templates = append(s.templates, s.depth)
		return 2
	}
	return 1
}
