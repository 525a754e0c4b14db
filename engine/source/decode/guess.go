package decode

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// guessed is the encoding of texts that are not UTF-8 and do not say what they are.
const guessed = "windows-1252"

// guess reads a text that is UTF-8 or windows-1252. In both, ASCII is ASCII, so it decides
// at the first character beyond.
type guess struct {
	in      *bufio.Reader
	patient bool
	other   bool      // it is windows-1252
	out     io.Reader // nil: there has been nothing but ASCII
}

func (g *guess) Read(p []byte) (int, error) {
	if g.out != nil {
		return g.out.Read(p)
	}
	if _, err := g.in.Peek(1); err != nil {
		return 0, err
	}
	have, _ := g.in.Peek(min(g.in.Buffered(), len(p)))
	if n := ascii(have); n > 0 {
		copy(p, have[:n])
		_, err := g.in.Discard(n)
		return n, err
	}
	if g.other = latin(beginning(g.in, g.patient)); g.other {
		g.out = charmap.Windows1252.NewDecoder().Reader(g.in)
	} else {
		g.out = g.in
	}
	return g.out.Read(p)
}

// ascii is how many characters of ASCII a text begins with.
func ascii(text []byte) int {
	n := 0
	for ; len(text)-n >= 8 && binary.LittleEndian.Uint64(text[n:])&0x8080808080808080 == 0; n += 8 {
	}
	for n < len(text) && text[n] < utf8.RuneSelf {
		n++
	}
	return n
}

// latin reports whether a text is windows-1252 rather than UTF-8 with some damage. Of that it
// has no more than chance makes, and neither the bytes that no character has nor ÿ, which
// hardly any language writes and damage often shows.
func latin(text []byte) bool {
	var valid, invalid int
	for len(text) > 0 {
		n := ascii(text)
		if text = text[n:]; len(text) == 0 {
			break
		}
		r, size := utf8.DecodeRune(text)
		switch {
		case r != utf8.RuneError || size > 1:
			valid++
		case !utf8.FullRune(text): // cut off
			return invalid > 4*valid
		case bytes.IndexByte([]byte{0x81, 0x8D, 0x8F, 0x90, 0x9D, 0xFF}, text[0]) >= 0:
			return false
		default:
			invalid++
		}
		text = text[size:]
	}
	return invalid > 4*valid
}
