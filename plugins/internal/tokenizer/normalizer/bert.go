package normalizer

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// This file cleans and splits texts as BERT's tokenizers do: it is the normalizer
// BertNormalizer of tokenizer.json. The pre-tokenizer BertPreTokenizer splits with its classes.
//
// It follows the tables of the tokenizers library, which are older than today's Unicode;
// about sixty characters that are newer than Go's own tables may get another case, or
// another class, than there. A test compares it with the library over every character.
// It knows no vocabulary.

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

// isAccent reports whether r is an accent. The library's tables still count one Philippine
// vowel sign among them.
func isAccent(r rune) bool {
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

// newer holds the characters that today's Unicode calls marks, punctuation or
// format controls and that the tables of the original tokenizer, which are
// those of Unicode 8, do not know: it keeps them inside words as they are.
// Recorded from the library over all code points; see record.py in the test data of package
// encoder.
var newer = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x061d, 0x061d, 1}, {0x07fd, 0x07fd, 1}, {0x0890, 0x0891, 1}, {0x0898, 0x089f, 1},
		{0x08ca, 0x08e2, 1}, {0x09fd, 0x09fe, 1}, {0x0a76, 0x0a76, 1}, {0x0afa, 0x0aff, 1},
		{0x0b55, 0x0b55, 1}, {0x0c04, 0x0c04, 1}, {0x0c3c, 0x0c3c, 1}, {0x0c77, 0x0c77, 1},
		{0x0c84, 0x0c84, 1}, {0x0d00, 0x0d00, 1}, {0x0d3b, 0x0d3c, 1}, {0x0d81, 0x0d81, 1},
		{0x0eba, 0x0eba, 1}, {0x0ece, 0x0ece, 1}, {0x180f, 0x180f, 1}, {0x1885, 0x1886, 1},
		{0x1abf, 0x1ace, 1}, {0x1b7d, 0x1b7e, 1}, {0x1df6, 0x1dfb, 1}, {0x2e43, 0x2e4f, 1},
		{0x2e52, 0x2e5d, 1}, {0xa82c, 0xa82c, 1}, {0xa8c5, 0xa8c5, 1}, {0xa8ff, 0xa8ff, 1},
		{0xa9bd, 0xa9bd, 1},
	},
	R32: []unicode.Range32{
		{0x10d24, 0x10d27, 1}, {0x10eab, 0x10ead, 1}, {0x10efd, 0x10eff, 1},
		{0x10f46, 0x10f50, 1}, {0x10f55, 0x10f59, 1}, {0x10f82, 0x10f89, 1},
		{0x11070, 0x11070, 1}, {0x11073, 0x11074, 1}, {0x110c2, 0x110c2, 1},
		{0x110cd, 0x110cd, 1}, {0x111cf, 0x111cf, 1}, {0x1123e, 0x1123e, 1},
		{0x11241, 0x11241, 1}, {0x1133b, 0x1133b, 1}, {0x11438, 0x1143f, 1},
		{0x11442, 0x11444, 1}, {0x11446, 0x11446, 1}, {0x1144b, 0x1144f, 1},
		{0x1145a, 0x1145b, 1}, {0x1145d, 0x1145e, 1}, {0x11660, 0x1166c, 1},
		{0x116b9, 0x116b9, 1}, {0x1182f, 0x11837, 1}, {0x11839, 0x1183b, 1},
		{0x1193b, 0x1193c, 1}, {0x1193e, 0x1193e, 1}, {0x11943, 0x11946, 1},
		{0x119d4, 0x119d7, 1}, {0x119da, 0x119db, 1}, {0x119e0, 0x119e0, 1},
		{0x119e2, 0x119e2, 1}, {0x11a01, 0x11a0a, 1}, {0x11a33, 0x11a38, 1},
		{0x11a3b, 0x11a47, 1}, {0x11a51, 0x11a56, 1}, {0x11a59, 0x11a5b, 1},
		{0x11a8a, 0x11a96, 1}, {0x11a98, 0x11a9c, 1}, {0x11a9e, 0x11aa2, 1},
		{0x11b00, 0x11b09, 1}, {0x11c30, 0x11c36, 1}, {0x11c38, 0x11c3d, 1},
		{0x11c3f, 0x11c3f, 1}, {0x11c41, 0x11c45, 1}, {0x11c70, 0x11c71, 1},
		{0x11c92, 0x11ca7, 1}, {0x11caa, 0x11cb0, 1}, {0x11cb2, 0x11cb3, 1},
		{0x11cb5, 0x11cb6, 1}, {0x11d31, 0x11d36, 1}, {0x11d3a, 0x11d3a, 1},
		{0x11d3c, 0x11d3d, 1}, {0x11d3f, 0x11d45, 1}, {0x11d47, 0x11d47, 1},
		{0x11d90, 0x11d91, 1}, {0x11d95, 0x11d95, 1}, {0x11d97, 0x11d97, 1},
		{0x11ef3, 0x11ef4, 1}, {0x11ef7, 0x11ef8, 1}, {0x11f00, 0x11f01, 1},
		{0x11f36, 0x11f3a, 1}, {0x11f40, 0x11f40, 1}, {0x11f42, 0x11f4f, 1},
		{0x11fff, 0x11fff, 1}, {0x12ff1, 0x12ff2, 1}, {0x13430, 0x13440, 1},
		{0x13447, 0x13455, 1}, {0x16e97, 0x16e9a, 1}, {0x16f4f, 0x16f4f, 1},
		{0x16fe2, 0x16fe2, 1}, {0x16fe4, 0x16fe4, 1}, {0x1cf00, 0x1cf2d, 1},
		{0x1cf30, 0x1cf46, 1}, {0x1e000, 0x1e006, 1}, {0x1e008, 0x1e018, 1},
		{0x1e01b, 0x1e021, 1}, {0x1e023, 0x1e024, 1}, {0x1e026, 0x1e02a, 1},
		{0x1e08f, 0x1e08f, 1}, {0x1e130, 0x1e136, 1}, {0x1e2ae, 0x1e2ae, 1},
		{0x1e2ec, 0x1e2ef, 1}, {0x1e4ec, 0x1e4ef, 1}, {0x1e944, 0x1e94a, 1},
		{0x1e95e, 0x1e95f, 1},
	},
}

// Bert prepares texts as the library's BertNormalizer does. The zero value changes
// nothing.
type Bert struct {
	Clean   bool // drop control characters, and make every white space a space
	Chinese bool // put spaces around Chinese characters
	Strip   bool // decompose characters and drop accents; Hangul is decomposed, too
	Lower   bool // lower case
}

// String returns the normalised text.
func (n Bert) String(text string) string {
	b := make([]byte, 0, len(text)+len(text)/8)
	for _, r := range text {
		switch {
		case n.Clean && isControl(r):
		case n.Clean && IsSpace(r):
			b = append(b, ' ')
		case n.Chinese && isChinese(r):
			b = append(utf8.AppendRune(append(b, ' '), r), ' ')
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	if n.Strip || n.Lower {
		b = n.fold(b)
	}
	return string(b)
}

// fold drops accents and turns letters into lower case, as far as n wants it. It may use
// the memory of s.
func (n Bert) fold(s []byte) []byte {
	if n.Strip && !norm.NFD.IsNormal(s) {
		s = norm.NFD.Bytes(s)
	}
	if ascii(s) {
		if n.Lower {
			for i, c := range s {
				if 'A' <= c && c <= 'Z' {
					s[i] = c + 'a' - 'A'
				}
			}
		}
		return s
	}
	b := make([]byte, 0, len(s)+8)
	for len(s) > 0 {
		r, size := utf8.DecodeRune(s)
		s = s[size:]
		switch {
		case n.Strip && isAccent(r):
		case n.Lower:
			b = AppendLower(b, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

func ascii(s []byte) bool {
	for _, c := range s {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
