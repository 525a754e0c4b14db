package path

import (
	"strings"
	"unicode"
)

// words splits a name: at characters that are neither letters nor digits, before a
// capital after a small letter (camel|Case), and before the last of several capitals
// that a small letter follows (HTTP|Server).
func words(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) {
			b.WriteByte(' ')
			continue
		}
		if i > 0 && unicode.IsUpper(r) {
			before := runes[i-1]
			if unicode.IsLower(before) || unicode.IsUpper(before) && i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
				b.WriteByte(' ')
			}
		}
		b.WriteRune(r)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
