package packet

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// writer gathers what several parts of a packet refer to by number. Number 0 is the empty text,
// no metadata and no entry.
type writer struct {
	texts   []string
	numbers map[string]int
	metas   [][]int
	byMap   map[uintptr]int // numbers of metas, by their maps
	byText  map[string]int  // the same by content
	entries entries
	byEntry map[[5]int]int
	err     error // of a value that cannot travel
}

func newWriter() *writer {
	return &writer{numbers: map[string]int{}, byMap: map[uintptr]int{}, byText: map[string]int{}, byEntry: map[[5]int]int{}}
}

// text is the number of a text, from 1; 0: it is empty.
func (w *writer) text(s string) int {
	if s == "" {
		return 0
	}
	n, ok := w.numbers[s]
	if !ok {
		w.texts = append(w.texts, packed(s))
		n = len(w.texts)
		w.numbers[s] = n
	}
	return n
}

// reader finds what parts refer to. The first thing that is wrong is its err.
type reader struct {
	texts   []string
	metas   [][]int
	made    []madeMeta
	entries entries
	err     error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("a packet is damaged: "+format, args...)
	}
}

func (r *reader) text(n int) string {
	switch {
	case n == 0:
		return ""
	case n < 0 || n > len(r.texts):
		r.fail("there is no text %d", n)
		return ""
	}
	return r.texts[n-1]
}

// unpack makes the texts what they were.
func (r *reader) unpack() {
	for i, s := range r.texts {
		var err error
		if r.texts[i], err = unpacked(s); err != nil {
			r.fail("text %d: %v", i+1, err)
		}
	}
}

// raw marks a text that JSON would change: bytes that are no UTF-8, which a row's other columns
// may have.
const raw = "\x00"

// packed is a text that JSON does not change.
func packed(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, raw) {
		return s
	}
	return raw + base64.StdEncoding.EncodeToString([]byte(s))
}

func unpacked(s string) (string, error) {
	s, is := strings.CutPrefix(s, raw)
	if !is {
		return s, nil
	}
	b, err := base64.StdEncoding.DecodeString(s)
	return string(b), err
}

// floats are numbers as they are in memory, little endian: also those that are none, which JSON
// does not have.
type floats []byte

func floatsOf(numbers ...float64) floats {
	var all floats
	for _, x := range numbers {
		all = binary.LittleEndian.AppendUint64(all, math.Float64bits(x))
	}
	return all
}

func (r *reader) numbers(f floats, n int) []float64 {
	if len(f) != 8*n {
		r.fail("%d bytes are not %d numbers", len(f), n)
		return nil
	}
	all := make([]float64, n)
	for i := range all {
		all[i] = math.Float64frombits(binary.LittleEndian.Uint64(f[8*i:]))
	}
	return all
}
