package report

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// columns is how many columns a rune takes on a terminal.
func columns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// columnsOf is the same of a text.
func columnsOf(text string) int {
	n := 0
	for _, r := range text {
		n += columns(r)
	}
	return n
}

// fit cuts a line to at most n columns. One that is cut ends with an ellipsis.
func fit(line string, n int) string {
	if columnsOf(line) <= n {
		return line
	}
	head, _ := split(line, max(n-1, 0))
	return strings.TrimRight(head, " ") + "…"
}

// split divides a line behind what takes at most n columns, and never between a
// character and its accents.
func split(line string, n int) (head, rest string) {
	used := 0
	for at, r := range line {
		if used += columns(r); used > n {
			return line[:at], line[at:]
		}
	}
	return line, ""
}

// legible makes one line of a text's line: what a terminal would obey instead of
// show is replaced, and tabs are spaces.
func legible(line string) string {
	return strings.Map(visible, strings.ReplaceAll(strings.TrimRight(line, "\r\n\t "), "\t", "    "))
}

// Escape makes one line of a text, without losing any of it: \t, \n, \r and \\ stand
// for a tab, the ends of lines and a backslash; \u001b and the like, by its code
// point, for any other character that breaks lines or that a terminal would obey.
// Bytes that are not UTF-8 become U+FFFD.
func Escape(text string) string {
	if !strings.ContainsFunc(text, escaped) {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	var b strings.Builder
	for _, r := range text {
		switch at := strings.IndexRune("\t\n\r\\", r); {
		case at >= 0:
			b.WriteByte('\\')
			b.WriteByte(`tnr\`[at])
		case escaped(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func escaped(r rune) bool {
	return r == '\\' || r == '\u2028' || r == '\u2029' || obeyed(r)
}

// wrap breaks a text into lines of at most n columns, between words where it can.
// Its own lines stay; blank ones that follow each other become one.
func wrap(text string, n int) []string {
	n = max(n, 2) // columns that every character fits
	var all []string
	for line := range strings.Lines(text) {
		line = legible(line)
		if line == "" {
			if len(all) > 0 && all[len(all)-1] != "" {
				all = append(all, "")
			}
			continue
		}
		for columnsOf(line) > n {
			head, rest := split(line, n)
			if !strings.HasPrefix(rest, " ") && !strings.HasSuffix(head, " ") {
				if at := strings.LastIndexByte(strings.TrimRight(head, " "), ' '); strings.TrimSpace(head[:max(at, 0)]) != "" {
					head, rest = head[:at], line[at:]
				}
			}
			all = append(all, strings.TrimRight(head, " "))
			line = strings.TrimLeft(rest, " ")
		}
		if line != "" {
			all = append(all, line)
		}
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// reflow joins the lines of a paragraph, which its author may have broken at any
// width. Those of tables, lists, headings and code stay as they are.
func reflow(text string) string {
	var b strings.Builder
	open, fenced := false, false // the line before can be gone on with
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n\t ")
		words := strings.TrimLeft(line, " ")
		fence := strings.HasPrefix(words, "```") || strings.HasPrefix(words, "~~~")
		plain := !fenced && !fence && words != "" && strings.IndexByte("|#>", words[0]) < 0 && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "\t")
		switch {
		case open && plain && !begins(words):
			b.WriteByte(' ')
			b.WriteString(words)
		default:
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line)
		}
		open = plain
		fenced = fenced != fence
	}
	return b.String()
}

// begins reports whether a line is the first of an item of a list.
func begins(line string) bool {
	mark, _, found := strings.Cut(line, " ")
	if !found || mark == "" {
		return false
	}
	if mark == "-" || mark == "*" || mark == "+" {
		return true
	}
	number := strings.TrimRight(mark, ".)")
	return number != mark && strings.Trim(number, "0123456789") == ""
}

// Quantity is a number of things, whose name takes an s where there are several.
func Quantity(n int, name string) string {
	if stem, ok := strings.CutSuffix(name, "y"); n != 1 && ok {
		name = stem + "ies"
	} else if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}
