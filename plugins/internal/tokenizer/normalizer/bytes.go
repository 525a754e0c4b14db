package normalizer

import "strings"

// ByteLevel returns text with each byte as the character that byte-level vocabularies
// write for it (Radford et al. 2019).
func ByteLevel(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/2)
	for i := range len(text) {
		b.WriteString(byteNames[text[i]])
	}
	return b.String()
}

// byteNames are the characters of bytes: printable ones of Latin-1 for themselves, the
// others from U+0100 on.
var byteNames = func() (names [256]string) {
	next := rune(256)
	for c := range names {
		r := rune(c)
		if !('!' <= r && r <= '~' || 0xa1 <= r && r <= 0xac || 0xae <= r) {
			r = next
			next++
		}
		names[c] = string(r)
	}
	return names
}()
