package syntax

import (
	"path"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// Language describes how to read a language.
type Language struct {
	names      string // its own name first, then file suffixes
	indented   bool   // indentation delimits units, not brackets
	semicolons bool   // statements end with a semicolon or a brace
	comments   string // begins a comment up to the end of the line
	block      string // begins a comment that ends with */
	directives bool   // # begins a preprocessor line
	quotes     string // delimiters of strings with escapes
	triple     bool   // three quotes delimit multi-line strings
	raw        string // which raw strings there are: r (Rust, C++), ` (Go), @ (C#)
	chars      bool   // ' delimits a character, or begins a lifetime
	template   bool   // ` delimits templates, / a regular expression
	closers    string // words that belong to the unit above
}

var all = []Language{
	{names: "go", comments: "//", block: "/*", quotes: `"`, raw: "`", chars: true},
	{names: "java", semicolons: true, comments: "//", block: "/*", quotes: `"`, triple: true, chars: true},
	{names: "c h", semicolons: true, comments: "//", block: "/*", directives: true, quotes: `"`, chars: true},
	{names: "cpp cc cxx c++ hpp hh hxx ipp inl cu cuh m mm ino", semicolons: true, comments: "//", block: "/*", directives: true, quotes: `"`, raw: "r", chars: true},
	{names: "csharp cs", semicolons: true, comments: "//", block: "/*", directives: true, quotes: `"`, triple: true, raw: "@", chars: true},
	{names: "javascript js jsx mjs cjs", comments: "//", block: "/*", quotes: `"'`, template: true},
	{names: "typescript ts tsx mts cts", comments: "//", block: "/*", quotes: `"'`, template: true},
	{names: "rust rs", semicolons: true, comments: "//", block: "/*", quotes: `"`, raw: "r", chars: true},
	{names: "kotlin kt kts", comments: "//", block: "/*", quotes: `"`, triple: true, chars: true},
	{names: "swift", comments: "//", block: "/*", quotes: `"`, triple: true},
	{names: "scala sc", comments: "//", block: "/*", quotes: `"`, triple: true, chars: true},
	{names: "groovy gradle", comments: "//", block: "/*", quotes: `"'`, triple: true},
	{names: "dart", semicolons: true, comments: "//", block: "/*", quotes: `"'`, triple: true},
	{names: "php", semicolons: true, comments: "// #", block: "/*", quotes: `"'`},
	{names: "proto", semicolons: true, comments: "//", block: "/*", quotes: `"'`},
	{names: "css scss less", semicolons: true, comments: "//", block: "/*", quotes: `"'`},
	{names: "zig", semicolons: true, comments: "//", quotes: `"`, chars: true},
	{names: "hcl tf", comments: "# //", block: "/*", quotes: `"`},
	{names: "python py pyi pyw", indented: true, comments: "#", quotes: `"'`, triple: true, closers: "elif else except finally"},
	{names: "yaml yml", indented: true, comments: "#"},
	{names: "ruby rb", indented: true, comments: "#", closers: "else elsif when rescue ensure end }"},
	{names: "lua", indented: true, comments: "--", closers: "else elseif end } until"},
	{names: "elixir ex exs", indented: true, comments: "#", closers: "else rescue after end }"},
	{names: "julia jl", indented: true, comments: "#", closers: "else elseif catch finally end"},
	{names: "shell sh bash zsh", indented: true, comments: "#", closers: "else elif fi done esac }"},
}

// Named returns a language by its name, or by a file suffix without the dot; nil: unknown.
func Named(name string) *Language {
	for i := range all {
		if slices.Contains(strings.Fields(all[i].names), strings.ToLower(name)) {
			return &all[i]
		}
	}
	return nil
}

// LanguageOf returns the language of a document by the suffix of its path, or of its id if it has no path; nil:
// unknown.
func LanguageOf(d *sdk.Document) *Language {
	name, _ := d.Meta["path"].(string)
	if name == "" {
		name = d.ID
	}
	if end := path.Ext(name); end != "" {
		return Named(end[1:])
	}
	return nil
}

// Names returns the names of all languages.
func Names() []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name()
	}
	return names
}

func (l *Language) has(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// kind is the kind of a line.
type kind uint8

const (
	blank kind = iota
	comment
	attribute // an annotation or decorator on a line of its own
	code
)

// line is a line of a source file.
type line struct {
	start, end int // end includes the line break
	kind       kind
	depth      int  // number of brackets around its beginning, or columns of indentation
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

// indentComments gives comments the depth of the line below if that is deeper: code that is commented out inside a
// block is often not indented.
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

// indentation returns the width of a line's white space, with tab stops every eight columns.
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

// isComment reports whether a line contains only a comment.
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

// isAttribute reports whether a line contains only attributes or annotations.
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

// alone reports whether only arguments follow the name of an annotation.
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

// follows reports whether a line continues the statement above, whatever the line above ends in.
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

// scanner tracks brackets, strings and comments from line to line.
type scanner struct {
	*Language
	text    string
	at      int
	lines   []line
	special [256]bool // characters that may begin a longer token

	depth      int
	until      string // ends the open comment or string
	inComment  bool
	long       bool  // the string may have several lines
	escapes    bool  // a backslash in the string escapes the next character
	templates  []int // depths at which a template's ${ is open; -1: in the text of a template
	annotation bool  // inside the arguments of an annotation
	outside    int   // the depth where the annotation began
	unfinished bool  // the statement has not ended
	directive  bool  // the preprocessor line ends in a backslash
	continued  bool  // the line above ends in a backslash
	branches   []int // depths at the open #if
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

// branch makes every branch of a condition begin at the depth of the first.
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

// ends reports whether a line ends a statement; last is its last character of code.
func (s *scanner) ends(line string, last byte) bool {
	if last == '{' || last == '(' || last == '[' { // the content begins anew
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

// step reads the token at i. It returns its length, and whether it is code.
func (s *scanner) step(i, end int, last byte) (int, bool) {
	rest := s.text[i:end]
	switch {
	case s.inComment && strings.HasPrefix(rest, s.until):
		s.inComment, s.until = false, ""
		return len("*/"), false
	case s.inComment:
		return 1, false
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
		s.inComment, s.until = true, "*/"
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
