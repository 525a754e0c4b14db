package lsp

import (
	"slices"
	"sort"
	"unicode/utf16"
	"unicode/utf8"
)

// text is a document's text with the beginnings of its lines.
type text struct {
	src   string
	lines []int // byte offsets; ends of lines are \n, \r\n and \r
}

func newText(src string) text {
	t := text{src: src, lines: []int{0}}
	for i := range len(src) {
		if src[i] == '\n' || src[i] == '\r' && (i+1 == len(src) || src[i+1] != '\n') {
			t.lines = append(t.lines, i+1)
		}
	}
	return t
}

// offset returns the byte that a position is before; one beyond the end of its line
// is at the end.
func (t text) offset(p position) int {
	if p.Line < 0 || p.Line >= len(t.lines) {
		return len(t.src)
	}
	at, end := t.lines[p.Line], len(t.src)
	if p.Line+1 < len(t.lines) {
		end = t.lines[p.Line+1]
	}
	for units := 0; at < end; {
		r, n := utf8.DecodeRuneInString(t.src[at:])
		if units += utf16.RuneLen(r); units > p.Character || r == '\n' || r == '\r' {
			break
		}
		at += n
	}
	return at
}

// position returns the position of a byte offset.
func (t text) position(offset int) position {
	offset = min(max(offset, 0), len(t.src))
	line := sort.SearchInts(t.lines, offset+1) - 1
	units := 0
	for _, r := range t.src[t.lines[line]:offset] {
		units += utf16.RuneLen(r)
	}
	return position{Line: line, Character: units}
}

func (t text) rangeOf(s span) textRange {
	return textRange{Start: t.position(s.from), End: t.position(s.to)}
}

// span is a part of a text: byte offsets.
type span struct{ from, to int }

func (s span) holds(offset int) bool { return s.from <= offset && offset <= s.to }

func (t text) at(s span) string { return t.src[s.from:s.to] }

// edits are those that make another text of this one: one that replaces the lines
// between those that stay.
func (t text) edits(after string) []textEdit {
	if after == t.src {
		return []textEdit{}
	}
	a, b := t.split(), newText(after).split()
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	from, to := 0, len(t.src)
	for _, line := range a[:head] {
		from += len(line)
	}
	for _, line := range a[len(a)-tail:] {
		to -= len(line)
	}
	var changed string
	for _, line := range b[head : len(b)-tail] {
		changed += line
	}
	return []textEdit{{Range: t.rangeOf(span{from, to}), NewText: changed}}
}

// split returns the lines with their ends.
func (t text) split() []string {
	var all []string
	ends := append(slices.Clone(t.lines[1:]), len(t.src))
	for i, from := range t.lines {
		all = append(all, t.src[from:ends[i]])
	}
	return all
}
