package markdown

import (
	"strings"
	"unicode/utf8"
)

// The kinds of blocks.
type kind uint8

const (
	prose   kind = iota // paragraphs and quotes
	lines               // tables, code, lists: what is cut at lines
	heading             //
	matter              // front matter
)

// block is a part of a document with the empty lines behind it. The blocks of a
// document follow each other without a gap.
type block struct {
	kind       kind
	start, end int
	title      string // of a heading
	level      int
}

// longest is the length of a title in metadata, in bytes.
const longest = 200

// blocks reads a document.
func blocks(text string) []block {
	r := reader{text: text}
	r.frontMatter()
	for r.at < len(text) {
		r.line()
	}
	return r.all
}

type reader struct {
	text string
	at   int // of the next line
	all  []block
	// what the last line left open
	paragraph bool   // it was of a paragraph
	quote     bool   // ... that is quoted
	table     bool   // ... of a table
	list      bool   // ... of a list, or an empty line in it
	empty     bool   // it was empty
	fence     string // the fence that ends the code
	until     string // what ends the HTML
}

// next returns the next line, without its end, and steps behind it.
func (r *reader) next() (line string, start int) {
	start = r.at
	if i := strings.IndexByte(r.text[start:], '\n'); i >= 0 {
		r.at = start + i + 1
	} else {
		r.at = len(r.text)
	}
	return strings.TrimRight(r.text[start:r.at], " \t\r\n"), start
}

// begin starts a block, and extend adds the line just read to the last.
func (r *reader) begin(k kind, start int) {
	if len(r.all) == 0 {
		start = 0
	}
	r.all = append(r.all, block{kind: k, start: start, end: r.at})
}

func (r *reader) extend() {
	if len(r.all) > 0 {
		r.all[len(r.all)-1].end = r.at
	}
}

// frontMatter reads what is between two lines of --- or +++ at the start.
func (r *reader) frontMatter() {
	r.at = len(r.text) - len(strings.TrimPrefix(r.text, "\uFEFF"))
	fence, _ := r.next()
	if fence == "---" || fence == "+++" {
		for r.at < len(r.text) {
			if line, _ := r.next(); line == fence || fence == "---" && line == "..." {
				r.begin(matter, 0)
				return
			}
		}
	}
	r.at = len(r.text) - len(strings.TrimPrefix(r.text, "\uFEFF"))
}

func (r *reader) line() {
	line, start := r.next()
	trimmed := strings.TrimLeft(line, " \t")
	indent := width(line[:len(line)-len(trimmed)])
	switch {
	case r.fence != "":
		r.extend()
		if run := runOf(trimmed, r.fence[0]); run >= len(r.fence) && run == len(trimmed) {
			r.fence = ""
		}
		return
	case r.until != "":
		r.extend()
		if strings.Contains(strings.ToLower(line), r.until) {
			r.until = ""
		}
		return
	case trimmed == "":
		r.extend()
		r.empty, r.paragraph, r.table = true, false, false
		return
	}
	after := r.empty
	r.empty = false

	if r.list && (indent >= 2 || isItem(trimmed) || !after) && !(indent < 2 && (isATX(trimmed) || fenceOf(trimmed) != "")) {
		r.fence = fenceOf(trimmed)
		r.extend()
		return
	}
	r.list = false
	if indent > 3 {
		switch {
		case r.paragraph: // goes on
			r.extend()
		case len(r.all) > 0 && r.all[len(r.all)-1].kind == lines:
			r.extend()
		default:
			r.begin(lines, start)
		}
		return
	}
	r.unindented(trimmed, start)
}

// unindented reads a line that can begin a block of any kind.
func (r *reader) unindented(line string, start int) {
	wasParagraph, wasTable := r.paragraph, r.table
	r.paragraph, r.table = false, false
	switch {
	case isATX(line):
		r.begin(heading, start)
		r.head(titleOf(line), runOf(line, '#'))
	case fenceOf(line) != "":
		r.fence = fenceOf(line)
		r.begin(lines, start)
	case wasParagraph && !r.quote && (runOf(line, '=') == len(line) || runOf(line, '-') == len(line)):
		r.underline(line)
	case endOfHTML(line) != "":
		r.begin(lines, start)
		if until := endOfHTML(line); !strings.Contains(strings.ToLower(line[1:]), until) {
			r.until = until
		}
	case isItem(line) && !isRule(line):
		r.list = true
		r.begin(lines, start)
	case wasTable:
		r.table = true
		r.extend()
	case wasParagraph && isDelimiter(line):
		// The line above is the table's head.
		r.table = true
		r.tableFrom(start)
	case wasParagraph:
		r.paragraph = true
		r.extend()
	default:
		r.paragraph, r.quote = !isRule(line), line[0] == '>'
		r.begin(prose, start)
	}
}

// head makes the last block a heading.
func (r *reader) head(title string, level int) {
	b := &r.all[len(r.all)-1]
	title = strings.Join(strings.Fields(title), " ")
	if len(title) > longest {
		title = title[:longest]
		for !utf8.ValidString(title) {
			title = title[:len(title)-1]
		}
	}
	b.kind, b.title, b.level = heading, title, level
}

// underline makes the paragraph above a heading.
func (r *reader) underline(line string) {
	b := r.all[len(r.all)-1]
	level := 1
	if line[0] == '-' {
		level = 2
	}
	title := r.text[b.start:b.end]
	r.extend()
	if len(title) > 4*longest { // too long for a title
		return
	}
	r.head(strings.TrimPrefix(title, "\uFEFF"), level)
}

// tableFrom makes the last line of the paragraph, and the one just read, a table.
func (r *reader) tableFrom(start int) {
	b := &r.all[len(r.all)-1]
	top := b.start + strings.LastIndexByte(r.text[b.start:start-1], '\n') + 1
	if top == b.start {
		b.kind = lines
		r.extend()
		return
	}
	b.end = top
	r.begin(lines, top)
}
