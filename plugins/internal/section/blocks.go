package section

import (
	"strings"
	"unicode/utf8"
)

// Kind is that of a block.
type Kind uint8

// The kinds of blocks.
const (
	Prose   Kind = iota // paragraphs and quotes
	Lines               // tables, code, lists: what is cut at lines
	Heading             //
	Matter              // front matter
)

// Block is a part of a document with the empty lines behind it: the bytes from
// Start up to End. The blocks of a document follow each other without a gap.
type Block struct {
	Kind       Kind
	Start, End int
	title      string // of a heading
	level      int
}

// longest is the length of a title in metadata, in bytes.
const longest = 200

// blocks reads a document.
func blocks(text string) []Block {
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
	all  []Block
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
func (r *reader) begin(k Kind, start int) {
	if len(r.all) == 0 {
		start = 0
	}
	r.all = append(r.all, Block{Kind: k, Start: start, End: r.at})
}

func (r *reader) extend() {
	if len(r.all) > 0 {
		r.all[len(r.all)-1].End = r.at
	}
}

// frontMatter reads what is between two lines of --- or +++ at the start.
func (r *reader) frontMatter() {
	r.at = len(r.text) - len(strings.TrimPrefix(r.text, "\uFEFF"))
	fence, _ := r.next()
	if fence == "---" || fence == "+++" {
		for r.at < len(r.text) {
			if line, _ := r.next(); line == fence || fence == "---" && line == "..." {
				r.begin(Matter, 0)
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
		case len(r.all) > 0 && r.all[len(r.all)-1].Kind == Lines:
			r.extend()
		default:
			r.begin(Lines, start)
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
		r.begin(Heading, start)
		r.head(titleOf(line), runOf(line, '#'))
	case fenceOf(line) != "":
		r.fence = fenceOf(line)
		r.begin(Lines, start)
	case wasParagraph && !r.quote && (runOf(line, '=') == len(line) || runOf(line, '-') == len(line)):
		r.underline(line)
	case endOfHTML(line) != "":
		r.begin(Lines, start)
		if until := endOfHTML(line); !strings.Contains(strings.ToLower(line[1:]), until) {
			r.until = until
		}
	case isItem(line) && !isRule(line):
		r.list = true
		r.begin(Lines, start)
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
		r.begin(Prose, start)
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
	b.Kind, b.title, b.level = Heading, title, level
}

// underline makes the paragraph above a heading.
func (r *reader) underline(line string) {
	b := r.all[len(r.all)-1]
	level := 1
	if line[0] == '-' {
		level = 2
	}
	title := r.text[b.Start:b.End]
	r.extend()
	if len(title) > 4*longest { // too long for a title
		return
	}
	r.head(strings.TrimPrefix(title, "\uFEFF"), level)
}

// tableFrom makes the last line of the paragraph, and the one just read, a table.
func (r *reader) tableFrom(start int) {
	b := &r.all[len(r.all)-1]
	top := b.Start + strings.LastIndexByte(r.text[b.Start:start-1], '\n') + 1
	if top == b.Start {
		b.Kind = Lines
		r.extend()
		return
	}
	b.End = top
	r.begin(Lines, top)
}
