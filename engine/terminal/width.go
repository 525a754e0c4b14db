package terminal

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Width is how many columns a text takes.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n += columns(r)
	}
	return n
}

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

// Fit cuts a line to at most n columns. A line that is cut ends with an ellipsis.
func Fit(line string, n int) string {
	if Width(line) <= n {
		return line
	}
	head, _ := split(line, max(n-1, 0))
	return strings.TrimRight(head, " ") + "…"
}

// split divides a line after at most n columns, and never between a character and
// its accents.
func split(line string, n int) (head, rest string) {
	used := 0
	for at, r := range line {
		if used += columns(r); used > n {
			return line[:at], line[at:]
		}
	}
	return line, ""
}
