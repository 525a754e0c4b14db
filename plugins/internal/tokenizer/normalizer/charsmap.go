package normalizer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/apparentlymart/go-textseg/v17/textseg"
)

// This file rewrites characters by the table in SentencePiece's models. It is the normaliser Precompiled of
// tokenizer.json, as in XLM-RoBERTa, whose table is NFKC with some changes of white space.
//
// It gives the same texts as the tokenizers library, which the test data record. The library differs from
// SentencePiece for a cluster of characters (Unicode's UAX 29) of fewer than six bytes. Such a cluster is replaced by
// the text of the shortest entry that it begins with, and the rest of the cluster is lost. This file does not create
// tables.

// charsmap is a table of rewritten characters. It is read-only and safe for concurrent use.
type charsmap struct {
	units []uint32            // a trie as a double array, in the layout of the library Darts-clone
	texts []byte              // replacements, each ended by a zero byte
	ascii [utf8.RuneSelf]bool // first characters of entries
}

// newCharsmap reads the bytes of a precompiled_charsmap, which is base64 in tokenizer.json: the size of the trie in
// bytes, the trie, and the texts that its values point to.
func newCharsmap(encoded []byte) (*charsmap, error) {
	if len(encoded) < 4 {
		return nil, errors.New("the precompiled_charsmap is empty or cut off")
	}
	size, rest := binary.LittleEndian.Uint32(encoded), encoded[4:]
	if size == 0 || size%4 != 0 || int64(size) > int64(len(rest)) {
		return nil, fmt.Errorf("the precompiled_charsmap has a trie of %d bytes in %d; the file is damaged", size, len(rest))
	}
	m := &charsmap{units: make([]uint32, size/4), texts: bytes.Clone(rest[size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(rest[4*i:])
	}
	if !utf8.Valid(m.texts) {
		return nil, errors.New("the precompiled_charsmap has texts that are not UTF-8; the file is damaged")
	}
	for c := range m.ascii {
		_, m.ascii[c] = m.step(m.offset(0), byte(c))
	}
	return m, nil
}

// offset returns where the units of a unit's children are.
func (m *charsmap) offset(unit uint32) uint32 {
	u := m.units[unit]
	return unit ^ u>>10<<(u&(1<<9)>>6)
}

// step follows byte b from the unit at, and reports whether any entry continues with b.
func (m *charsmap) step(at uint32, b byte) (uint32, bool) {
	at ^= uint32(b)
	return at, b != 0 && at < uint32(len(m.units)) && m.units[at]&(1<<31|0xff) == uint32(b)
}

// rewrite returns the replacement of the shortest entry that s begins with.
func (m *charsmap) rewrite(s string) (string, bool) {
	at := m.offset(0)
	for i := range len(s) {
		unit, ok := m.step(at, s[i])
		if !ok {
			break
		}
		at = m.offset(unit)
		if m.units[unit]>>8&1 == 0 {
			continue
		}
		if at >= uint32(len(m.units)) {
			break
		}
		from := m.units[at] &^ (1 << 31)
		if from > uint32(len(m.texts)) {
			break
		}
		text, _, _ := bytes.Cut(m.texts[from:], []byte{0})
		return string(text), utf8.Valid(text)
	}
	return "", false
}

// normalize returns s with its characters rewritten.
func (m *charsmap) normalize(s string) string {
	var b strings.Builder
	done := 0 // how many bytes of s are already in b
	put := func(at, n int) bool {
		text, ok := m.rewrite(s[at : at+n])
		if ok {
			b.WriteString(s[done:at])
			b.WriteString(text)
			done = at + n
		}
		return ok
	}
	whole := []byte(s)
	for at := 0; at < len(s); {
		n := clusterLen(whole[at:])
		if n == 1 && s[at] < utf8.RuneSelf && !m.ascii[s[at]] || n < 6 && put(at, n) {
			at += n
			continue
		}
		for end := at + n; at < end; {
			_, n := utf8.DecodeRuneInString(s[at:end])
			put(at, n)
			at += n
		}
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// clusterLen returns the length in bytes of the cluster of characters at the beginning of s, which is not empty.
func clusterLen(s []byte) int {
	if s[0] < utf8.RuneSelf && s[0] != '\r' && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return 1
	}
	n, _, _ := textseg.ScanGraphemeClusters(s, true) // it returns no error for a whole text
	return n
}
