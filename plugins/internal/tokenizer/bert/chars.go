package bert

import (
	"unicode"
	"unicode/utf8"
)

// IsSpace reports whether r is white space in Unicode.
func IsSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || '\t' <= r && r <= '\r'
	}
	return unicode.IsSpace(r)
}

// IsPunct reports whether r is punctuation: of ASCII every symbol, of the others only
// what Unicode calls so, and a Canadian sign that it called so once.
func IsPunct(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < 0x7f && !('0' <= r && r <= '9') && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z')
	}
	return unicode.IsPunct(r) && !unicode.Is(newer, r) || r == 0x166D
}

// isControl reports whether cleaning drops r. Bytes that are not UTF-8 arrive as the
// replacement character and are dropped with it.
func isControl(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f
	}
	return r == utf8.RuneError ||
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) && !unicode.Is(newer, r)
}

// isMark reports whether r is an accent. The library's tables still count one Philippine
// vowel sign among them.
func isMark(r rune) bool {
	return unicode.Is(unicode.Mn, r) && !unicode.Is(newer, r) || r == 0x1734
}

// isChinese reports whether r is in one of the CJK blocks that BERT splits at.
func isChinese(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF ||
		0x20000 <= r && r <= 0x2A6DF || 0x2A700 <= r && r <= 0x2B73F ||
		0x2B740 <= r && r <= 0x2B81F || 0x2B920 <= r && r <= 0x2CEAF ||
		0xF900 <= r && r <= 0xFAFF || 0x2F800 <= r && r <= 0x2FA1F
}

// AppendLower appends the lower case of r as UTF-8. One letter, the Turkish İ, becomes two.
func AppendLower(b []byte, r rune) []byte {
	if r == 'İ' {
		return append(b, "i\u0307"...)
	}
	return utf8.AppendRune(b, unicode.ToLower(r))
}
