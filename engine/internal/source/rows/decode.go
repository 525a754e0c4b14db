package rows

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// This file turns the bytes of a file into UTF-8 text. It unpacks gzip and zstd in bounded memory, decodes the text
// from a given or detected encoding, and recognises files without text by their first bytes.
//
// It does not know what the text means.

// Text is a stream of UTF-8, decoded from any encoding.
type Text struct {
	*bufio.Reader
	encoding string
	guess    *guess // nil: the encoding is certain
}

// Decode returns the text of a stream in an encoding, given by its IANA name. Without a name it detects the encoding:
// by a byte order mark, otherwise by what Guess reports for the bytes from the first non-ASCII character on. It may
// read a patient stream ahead. Standard input is not patient, since the program that writes to it may wait for an
// answer.
func Decode(in *bufio.Reader, name string, patient bool) (*Text, error) {
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
	if first, _, _ := bytes.Cut(head, []byte("\n")); bytes.IndexByte(first, 0) >= 0 {
		return nil, errBinary
	}
	g := &guess{in: in, patient: patient}
	return &Text{Reader: bufio.NewReaderSize(g, BufferSize), guess: g}, nil
}

var errBinary = errors.New("the file is binary; rows are text, in Parquet files or in workbooks: if this is text after all, name its encoding, such as utf-16le")

func utf16(e unicode.Endianness) encoding.Encoding { return unicode.UTF16(e, unicode.UseBOM) }

func decoded(in *bufio.Reader, name string, e encoding.Encoding) *Text {
	return &Text{Reader: bufio.NewReaderSize(e.NewDecoder().Reader(in), BufferSize), encoding: name}
}

// named returns the text of a stream in a given encoding.
func named(in *bufio.Reader, name string) (*Text, error) {
	e, err := FindEncoding(name)
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

// FindEncoding finds an encoding by its name.
func FindEncoding(name string) (encoding.Encoding, error) {
	spelt := strings.ToLower(strings.TrimSpace(name))
	e, err := htmlindex.Get(spelt)
	if err != nil {
		e, err = htmlindex.Get(strings.NewReplacer("_", "-", " ", "-").Replace(spelt))
	}
	if err != nil {
		return nil, fmt.Errorf("there is no encoding %q; its name is one of the web's, such as utf-8, utf-16le, windows-1252, iso-8859-2, shift_jis, gbk, big5 or koi8-r", name)
	}
	return e, nil
}

// Encoding returns the name of the encoding, as far as the text has been read. If the text is only ASCII so far, the
// encoding is utf-8.
func (t *Text) Encoding() string {
	if t.guess != nil {
		return cmp.Or(t.guess.name, "utf-8")
	}
	return t.encoding
}

// Guessed reports whether the encoding is likely, but not certain.
func (t *Text) Guessed() bool { return t.guess != nil && t.guess.name != "" }

// Lossy reports whether U+FFFD in the text always means an undecodable character.
func (t *Text) Lossy() bool {
	if t.guess != nil {
		return t.guess.name != ""
	}
	return !strings.HasPrefix(t.encoding, "utf-")
}

// beginning returns the bytes to examine: as many bytes of a patient stream as fit in the buffer, or the first line of
// another stream.
func beginning(in *bufio.Reader, patient bool) []byte {
	if patient {
		head, _ := in.Peek(BufferSize)
		return head
	}
	return line(in)
}

// line returns the beginning of a stream up to the end of a line, or as much as fits in the buffer.
func line(in *bufio.Reader) []byte {
	for n := 1; ; n = in.Buffered() + 1 {
		head, err := in.Peek(min(n, BufferSize))
		if err == nil {
			head, err = in.Peek(in.Buffered())
		}
		if at := bytes.IndexAny(head, "\n\r"); at >= 0 {
			return head[:at+1]
		}
		if err != nil || len(head) >= BufferSize {
			return head
		}
	}
}

// guess reads a text of unnamed encoding. ASCII is the same in all possible encodings, so guess decides at the first
// other character.
type guess struct {
	in      *bufio.Reader
	patient bool
	name    string    // of an encoding other than UTF-8
	out     io.Reader // nil: only ASCII so far
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
	g.out = g.in
	if e, _ := Guess(beginning(g.in, g.patient)); e != nil {
		g.name, _ = htmlindex.Name(e)
		g.out = e.NewDecoder().Reader(g.in)
	}
	return g.out.Read(p)
}

// ascii returns the number of ASCII characters at the beginning of a text.
func ascii(text []byte) int {
	n := 0
	for ; len(text)-n >= 8 && binary.LittleEndian.Uint64(text[n:])&0x8080808080808080 == 0; n += 8 {
	}
	for n < len(text) && text[n] < utf8.RuneSelf {
		n++
	}
	return n
}

// Guess returns the encoding of a text without a byte order mark or a name of its encoding; nil: it is UTF-8, perhaps
// damaged. sure reports whether the bytes determine the encoding. Otherwise the text counts as windows-1252, unless it
// has a byte that is undefined there, or ÿ, which hardly any language uses and damage often shows. Valid UTF-8 is rare
// in other encodings.
func Guess(text []byte) (e encoding.Encoding, sure bool) {
	first := ascii(text)
	valid, invalid, undefined, run, longest := 0, 0, false, 0, 0
	for rest := text[first:]; len(rest) > 0; {
		if n := ascii(rest); n > 0 {
			rest, run = rest[n:], 0
			continue
		}
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			if !utf8.FullRune(rest) && valid+invalid > 0 { // the end is cut off
				break
			}
			invalid++
			undefined = undefined || bytes.IndexByte([]byte{0x81, 0x8D, 0x8F, 0x90, 0x9D, 0xFF}, rest[0]) >= 0
		} else {
			valid++
		}
		rest, run = rest[size:], run+size
		longest = max(longest, run)
	}
	if invalid <= valid {
		return nil, false
	}
	start := max(0, first-detected/16)
	if e := detect(text[start:min(len(text), start+detected)], longest); e != nil {
		return e, true
	}
	if undefined || invalid <= 4*valid {
		return nil, false
	}
	return charmap.Windows1252, false
}

// Limits of detection.
const (
	detected      = 16 << 10 // bytes to examine
	fewConfidence = 12       // highest confidence of the detector in texts that are too short
	longRun       = 4        // non-ASCII bytes in a row: frequent in words of other scripts, rare in Latin words
)

// detect returns the encoding for which the letters and pairs of bytes of a text are typical. It returns nil if there
// is none, or if they are as typical for windows-1252. longest is the longest run of non-ASCII bytes.
func detect(text []byte, longest int) encoding.Encoding {
	all, _ := chardet.NewTextDetector().DetectAll(text) // an error means that there are none
	if len(all) == 0 || all[0].Confidence < fewConfidence {
		return nil
	}
	for _, one := range all {
		western := one.Charset == "ISO-8859-1" || one.Charset == "windows-1252"
		if western && one.Confidence == all[0].Confidence {
			return nil
		}
	}
	e, err := htmlindex.Get(all[0].Charset)
	latin := slices.Contains([]string{"ISO-8859-2", "ISO-8859-9", "windows-1250", "windows-1254"}, all[0].Charset)
	if err != nil || e == unicode.UTF8 || !latin && longest < longRun {
		return nil
	}
	return e
}

// known lists binary files by their first bytes, each with advice.
var known = []struct{ begins, advice string }{
	{"PK\x03\x04", "the file is a zip archive, which is binary: unpack it and name the file in it; if it is a workbook of Excel, its name ends in .xlsx, and it cannot come from standard input"},
	{"\xD0\xCF\x11\xE0", "the file is an old office file, or a new one with a password, which is binary: open it and save it as .xlsx without a password, or as CSV"},
	{"PAR1", "the file is Parquet, which is binary and cannot come from standard input or be packed again: name the file itself, with a name that ends in .parquet"},
	{"BZh", "the file is packed with bzip2: unpack it with bunzip2, or pack it with gzip or zstd"},
	{"\xFD7zXZ\x00", "the file is packed with xz: unpack it with xz -d, or pack it with gzip or zstd"},
	{"7z\xBC\xAF\x27\x1C", "the file is a 7z archive, which is binary: unpack it and name the file in it"},
	{"Rar!", "the file is a rar archive, which is binary: unpack it and name the file in it"},
	{"%PDF-", "the file is a PDF, which is no file of rows: name it as the documents of a knowledge, or export its table as CSV"},
	{"SQLite format 3\x00", "the file is a SQLite database, which is binary: list its tables with sqlite3 FILE .tables, and export one with sqlite3 -header -csv FILE 'select * from TABLE' > rows.csv"},
	{"ARROW1", `the file is Arrow or Feather, which is binary: write it as Parquet, with python3 -c "import pandas; pandas.read_feather('FILE').to_parquet('rows.parquet')"`},
	{"FEA1", `the file is Feather, which is binary: write it as Parquet, with python3 -c "import pandas; pandas.read_feather('FILE').to_parquet('rows.parquet')"`},
	{"\xFF\xFF\xFF\xFF", `the file is a stream of Arrow, which is binary: write it as Parquet, with python3 -c "import datasets; datasets.Dataset.from_file('FILE').to_parquet('rows.parquet')"`},
	{"Obj\x01", "the file is Avro, which is binary: write it as JSONL, with avro-tools tojson, or as Parquet"},
	{"ORC", "the file is ORC, which is binary: write it as Parquet or CSV"},
	{"\x80\x04\x95", `the file is a pickle of Python, which is binary: if you trust it, write it as Parquet, with python3 -c "import pandas; pandas.read_pickle('FILE').to_parquet('rows.parquet')"`},
	{"\x89HDF", "the file is HDF5, which is binary: write it as Parquet or CSV"},
}

// Refuse returns an error with advice if a file begins like a known binary file.
func Refuse(head []byte) error {
	for _, k := range known {
		if bytes.HasPrefix(head, []byte(k.begins)) && (k.begins == "%PDF-" || bytes.IndexByte(head, 0) >= 0 || !utf8.Valid(head)) {
			return errors.New(k.advice)
		}
	}
	return nil
}

// BufferSize is the size of a stream's buffer in bytes, which limits reading ahead.
const BufferSize = 64 << 10

// Limits of unpacking. Written text typically compresses to a tenth, repetitive tables to a
// hundredth.
const (
	maxPackedRatio = 250      // unpacked bytes for each packed byte
	freePacked     = 64 << 20 // maxPackedRatio applies beyond this many unpacked bytes
	maxWindow      = 64 << 20 // of zstd, in bytes, which the decoder keeps in memory
)

// Packed returns the compression of a file by its first bytes.
func Packed(head []byte) (compression string, ok bool) {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "gzip", true
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd", true
	}
	return "", false
}

// Unpack unpacks a stream of gzip or zstd, and returns the name of the compression. It returns any
// other stream as it is.
func Unpack(in *bufio.Reader) (out *bufio.Reader, compression string, err error) {
	head, _ := in.Peek(4)
	packed := &counted{in: in}
	switch name, _ := Packed(head); name {
	case "gzip":
		r, err := gzip.NewReader(packed)
		if err != nil {
			return nil, "gzip", brokenPacked("gzip", err)
		}
		return unpacked("gzip", r, packed), "gzip", nil
	case "zstd":
		r, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, "zstd", brokenPacked("zstd", err)
		}
		return unpacked("zstd", r, packed), "zstd", nil
	}
	return in, "", nil
}

func unpacked(name string, r io.Reader, packed *counted) *bufio.Reader {
	return bufio.NewReaderSize(&unpacker{name: name, in: r, packed: packed}, BufferSize)
}

// counted counts the bytes read.
type counted struct {
	in io.Reader
	n  int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// unpacker fails if the unpacked size is out of proportion to the packed size.
type unpacker struct {
	name   string
	in     io.Reader
	packed *counted
	n      int64
}

func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	u.n += int64(n)
	switch {
	case u.n > freePacked && u.n/maxPackedRatio > u.packed.n:
		return 0, fmt.Errorf("%d bytes of %s unpack to more than %d: nobody writes such rows; if you trust the file, unpack it yourself", u.packed.n, u.name, u.n)
	case err != nil && err != io.EOF:
		err = brokenPacked(u.name, err)
	}
	return n, err
}

func brokenPacked(name string, err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("the file is cut off within its %s data: get it once more", name)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("the file is packed with a window of more than %d MiB: unpack it yourself, with zstd -d --long=31", maxWindow>>20)
	}
	return fmt.Errorf("the file's %s data is damaged (%w): get it once more", name, err)
}
