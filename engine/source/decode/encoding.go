package decode

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Text is a stream of UTF-8, whatever its bytes were.
type Text struct {
	*bufio.Reader
	encoding string
	guess    *guess // nil: nothing had to be guessed
}

// NewText returns the text of a stream that is written in an encoding, by its IANA name.
// Without a name it is found out: a byte order mark tells, then zero bytes tell UTF-16, and
// where the first character beyond ASCII is no UTF-8, it is taken for windows-1252. A patient
// stream may be read ahead of what is asked for; standard input may not, since whoever writes
// to it may wait for an answer.
func NewText(in *bufio.Reader, name string, patient bool) (*Text, error) {
	head := beginning(in, patient)
	switch {
	case name != "":
		return named(in, name)
	case bytes.HasPrefix(head, []byte{0xEF, 0xBB, 0xBF}):
		_, err := in.Discard(3)
		return &Text{Reader: in, encoding: "utf-8"}, err
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE, 0, 0}):
		return decoded(in, "utf-32le", utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)), nil
	case bytes.HasPrefix(head, []byte{0, 0, 0xFE, 0xFF}):
		return decoded(in, "utf-32be", utf32.UTF32(utf32.BigEndian, utf32.UseBOM)), nil
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}):
		return decoded(in, "utf-16le", utf16(unicode.LittleEndian)), nil
	case bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return decoded(in, "utf-16be", utf16(unicode.BigEndian)), nil
	}
	if err := Refuse(head); err != nil {
		return nil, err
	}
	switch first, _, _ := bytes.Cut(head, []byte("\n")); wide(first) {
	case 0:
		return decoded(in, "utf-16be", utf16(unicode.BigEndian)), nil
	case 1:
		return decoded(in, "utf-16le", utf16(unicode.LittleEndian)), nil
	default:
		if bytes.IndexByte(first, 0) >= 0 {
			return nil, errBinary
		}
	}
	g := &guess{in: in, patient: patient}
	return &Text{Reader: bufio.NewReaderSize(g, Size), guess: g}, nil
}

var errBinary = errors.New("the file is binary; rows are text, in Parquet files or in workbooks: if this is text after all, name its encoding, such as utf-16le")

func utf16(e unicode.Endianness) encoding.Encoding { return unicode.UTF16(e, unicode.UseBOM) }

func decoded(in *bufio.Reader, name string, e encoding.Encoding) *Text {
	return &Text{Reader: bufio.NewReaderSize(e.NewDecoder().Reader(in), Size), encoding: name}
}

// named is the text of a stream of which the encoding is given.
func named(in *bufio.Reader, name string) (*Text, error) {
	e, err := Encoding(name)
	if err != nil {
		return nil, err
	}
	canonical, _ := htmlindex.Name(e)
	switch canonical {
	case "utf-8":
		if head, _ := in.Peek(3); bytes.Equal(head, []byte{0xEF, 0xBB, 0xBF}) {
			_, err = in.Discard(3)
		}
		return &Text{Reader: in, encoding: canonical}, err
	case "utf-16le":
		e = utf16(unicode.LittleEndian)
	case "utf-16be":
		e = utf16(unicode.BigEndian)
	}
	return decoded(in, canonical, e), nil
}

// Encoding finds an encoding by its name.
func Encoding(name string) (encoding.Encoding, error) {
	spelt := strings.ToLower(strings.TrimSpace(name))
	if page, ok := strings.CutPrefix(strings.ReplaceAll(spelt, "_", "-"), "cp"); ok && strings.HasPrefix(page, "125") {
		spelt = "windows-" + page
	}
	e, err := htmlindex.Get(spelt)
	if err != nil {
		e, err = htmlindex.Get(strings.NewReplacer("_", "-", " ", "-").Replace(spelt))
	}
	if err != nil {
		return nil, fmt.Errorf("there is no encoding %q; its name is one of the web's, such as utf-8, utf-16le, windows-1252, iso-8859-2, shift_jis, gbk, big5 or koi8-r", name)
	}
	return e, nil
}

// Encoding is the name of the encoding, as far as the text has been read: while there is
// nothing but ASCII, it is utf-8.
func (t *Text) Encoding() string {
	if t.guess != nil {
		if t.guess.other {
			return guessed
		}
		return "utf-8"
	}
	return t.encoding
}

// Guessed reports whether the encoding is no more than likely.
func (t *Text) Guessed() bool { return t.guess != nil && t.guess.other }

// Lossy reports whether a character that cannot be decoded reads U+FFFD, and nothing else
// does.
func (t *Text) Lossy() bool {
	if t.guess != nil {
		return t.guess.other
	}
	return !strings.HasPrefix(t.encoding, "utf-")
}

// beginning is what can be looked at: of a patient stream as much as fits, of another the
// first line.
func beginning(in *bufio.Reader, patient bool) []byte {
	if patient {
		head, _ := in.Peek(Size)
		return head
	}
	return line(in)
}

// line is what a stream begins with, to the end of a line; all of it where that is not near.
func line(in *bufio.Reader) []byte {
	for n := 1; ; n = in.Buffered() + 1 {
		head, err := in.Peek(min(n, Size))
		if err == nil {
			head, err = in.Peek(in.Buffered())
		}
		if at := bytes.IndexAny(head, "\n\r"); at >= 0 {
			return head[:at+1]
		}
		if err != nil || len(head) >= Size {
			return head
		}
	}
}

// wide says which byte of each pair is zero in a text in UTF-16: 0 or 1; -1: it is not UTF-16.
func wide(text []byte) int {
	text = text[:min(len(text), 1024)]
	var zeros [2]int
	for i, b := range text {
		if b == 0 {
			zeros[i%2]++
		}
	}
	for at, n := range zeros {
		if pairs := len(text) / 2; n*2 > pairs && zeros[1-at] == 0 {
			return at
		}
	}
	return -1
}
