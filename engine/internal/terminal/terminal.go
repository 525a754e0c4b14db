package terminal

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Bytes formats a number of bytes in a suitable unit, such as 90.9 MB.
func Bytes(n int64) string {
	digits, unit := BytesLike(n, n)
	return digits + " " + unit
}

// BytesLike formats a number of bytes in the unit that suits another number.
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

// obeyed reports whether a terminal would obey a character or hide it, such as characters that change
// the direction of text or begin lines.
func obeyed(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// joins reports whether a character may follow another character because it joins or separates
// letters in a script that needs this, or parts of an emoji.
func joins(r, before rune) bool {
	return (r == '\u200c' || r == '\u200d') && before >= '\u0600' && before != utf8.RuneError && !obeyed(before)
}

// Visible replaces each character that a terminal would obey or hide by U+FFFD, except the characters
// in kept.
func Visible(text, kept string) string {
	before := utf8.RuneError
	return strings.Map(func(r rune) rune {
		if obeyed(r) && !joins(r, before) && !strings.ContainsRune(kept, r) {
			r = utf8.RuneError
		}
		before = r
		return r // a byte that is not UTF-8 arrives as utf8.RuneError
	}, text)
}

// SameLength is like Visible for the text of a file, but keeps all byte positions: question marks
// replace the bytes.
func SameLength(text []byte) []byte {
	out := slices.Clone(text)
	for at := 0; at < len(out); {
		r, n := utf8.DecodeRune(out[at:])
		if r == utf8.RuneError && n == 1 || obeyed(r) && r != '\n' && r != '\t' && !bytes.HasPrefix(out[at:], []byte("\r\n")) {
			copy(out[at:at+n], "????")
		}
		at += n
	}
	return out
}

// Shorten makes one line of at most n runes of any text, and collapses whitespace.
func Shorten(text string, n int) string {
	text = Visible(strings.Join(strings.Fields(text), " "), "")
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// Sanitize makes a message safe for a terminal, but keeps its tabs and lines. It indents lines
// after the first, so that none looks like another message.
func Sanitize(message string) string {
	return strings.ReplaceAll(Visible(message, "\n\t"), "\n", "\n    ") // lines and tabs, as in a stack trace
}

// Line makes one line safe for a terminal. Tabs become spaces.
func Line(line string) string {
	return Visible(strings.ReplaceAll(strings.TrimRight(line, "\r\n\t "), "\t", "    "), "")
}

// Escape writes a text in one line without losing any of it: \t, \n, \r and \\ stand for a tab, the
// ends of lines and a backslash. Any other character that breaks lines or that a terminal would
// obey becomes its code point, such as \u001b. Bytes that are not UTF-8 become U+FFFD.
func Escape(text string) string {
	var b strings.Builder
	before := utf8.RuneError
	for _, r := range text {
		switch at := strings.IndexRune("\t\n\r\\", r); {
		case at >= 0:
			b.WriteByte('\\')
			b.WriteByte(`tnr\`[at])
		case obeyed(r) && !joins(r, before):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// NewTable returns a writer that aligns tab-terminated cells when it is flushed.
func NewTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// Plural formats a number of things with their name: 1 entry, 2 entries.
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

// Width returns how many columns a text takes.
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

// Fit cuts a line to at most n columns, and ends a cut line with an ellipsis.
func Fit(line string, n int) string {
	if Width(line) <= n {
		return line
	}
	head, _ := split(line, max(n-1, 0))
	return strings.TrimRight(head, " ") + "…"
}

// split splits a line after at most n columns, but never between a character and its accents.
func split(line string, n int) (head, rest string) {
	used := 0
	for at, r := range line {
		if used += columns(r); used > n {
			return line[:at], line[at:]
		}
	}
	return line, ""
}

// Wrap breaks a text into lines of at most n columns, between words where it can. It keeps the
// text's own line breaks, and merges consecutive blank lines.
func Wrap(text string, n int) []string {
	n = max(n, 2) // enough columns for every character
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

// Reflow joins the lines of a paragraph, which its author may have broken at any width. It keeps
// the lines of tables, lists, headings and code.
func Reflow(text string) string {
	var b strings.Builder
	open, fenced := false, false // open: the line before may be continued
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

// begins reports whether a line begins an item of a list.
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
