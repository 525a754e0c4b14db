package terminal

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Bytes shows a number of bytes in the unit that suits it, such as 90.9 MB.
func Bytes(n int64) string {
	digits, unit := BytesLike(n, n)
	return digits + " " + unit
}

// BytesLike shows a number of bytes in the unit that suits another one.
func BytesLike(n, like int64) (digits, unit string) {
	for _, by := range []struct {
		bytes int64
		name  string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if like >= by.bytes {
			return fmt.Sprintf("%.1f", float64(n)/float64(by.bytes)), by.name
		}
	}
	return fmt.Sprint(n), "B"
}

// Visible replaces a character that a terminal would obey instead of showing it with
// U+FFFD.
func Visible(r rune) rune {
	if obeyed(r) {
		return utf8.RuneError
	}
	return r // a byte that is not UTF-8 arrives as utf8.RuneError
}

func obeyed(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// Shorten fits a text from anywhere into one line of n runes, whitespace collapsed.
func Shorten(text string, n int) string {
	text = strings.Map(Visible, strings.Join(strings.Fields(text), " "))
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// Sanitize makes a message harmless, but keeps its tabs and lines. Lines after the
// first are indented, so that none looks like another message.
func Sanitize(message string) string {
	message = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' { // of a stack, say
			return r
		}
		return Visible(r)
	}, message)
	return strings.ReplaceAll(message, "\n", "\n    ")
}

// Line makes one line harmless. Tabs become spaces.
func Line(line string) string {
	return strings.Map(Visible, strings.ReplaceAll(strings.TrimRight(line, "\r\n\t "), "\t", "    "))
}

// Escape writes a text in one line, without losing any of it: \t, \n, \r and \\ stand
// for a tab, the ends of lines and a backslash; \u001b and the like, by its code
// point, for any other character that breaks lines or that a terminal would obey.
// Bytes that are not UTF-8 become U+FFFD.
func Escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch at := strings.IndexRune("\t\n\r\\", r); {
		case at >= 0:
			b.WriteByte('\\')
			b.WriteByte(`tnr\`[at])
		case r == '\u2028' || r == '\u2029' || obeyed(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// NewTable aligns lines of cells that end with tabs, once it is flushed.
func NewTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// Plural is a number of things by their name: 1 entry, 2 entries.
func Plural(n int, name string) string {
	if stem, ok := strings.CutSuffix(name, "y"); n != 1 && ok && !strings.HasSuffix(stem, "a") { // but 2 days
		name = stem + "ies"
	} else if n != 1 && strings.HasSuffix(name, "ch") {
		name += "es"
	} else if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}

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
