package terminal

import "strings"

// Wrap breaks a text into lines of at most n columns, between words where it can.
// Its own lines stay; blank ones that follow each other become one.
func Wrap(text string, n int) []string {
	n = max(n, 2) // columns that every character fits
	var all []string
	for line := range strings.Lines(text) {
		line = Line(line)
		if line == "" {
			if len(all) > 0 && all[len(all)-1] != "" {
				all = append(all, "")
			}
			continue
		}
		for Width(line) > n {
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

// Reflow joins the lines of a paragraph, which its author may have broken at any
// width. Those of tables, lists, headings and code stay as they are.
func Reflow(text string) string {
	var b strings.Builder
	open, fenced := false, false // the line before may be continued
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
