package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
