package normalizer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// charsmapRecorded reads the recorded file: a map, and the results of the tokenizers library for texts.
func charsmapRecorded(t testing.TB) ([]byte, [][2]string) {
	t.Helper()
	file, err := os.Open("testdata/charsmap.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := json.NewDecoder(file)
	var encoded []byte
	if err := lines.Decode(&encoded); err != nil {
		t.Fatal(err)
	}
	var texts [][2]string
	for lines.More() {
		var text [2]string
		if err := lines.Decode(&text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return encoded, texts
}

func TestCharsmapRecorded(t *testing.T) {
	encoded, texts := charsmapRecorded(t)
	m, err := newCharsmap(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 700 {
		t.Errorf("only %d texts", len(texts))
	}
	for _, text := range texts {
		if got := m.normalize(text[0]); got != text[1] {
			t.Errorf("%q: got %q, want %q", text[0], got, text[1])
		}
	}
}

func TestRefused(t *testing.T) {
	encoded, _ := charsmapRecorded(t)
	size := binary.LittleEndian.Uint32(encoded)
	for name, c := range map[string]struct {
		encoded []byte
		want    string
	}{
		"empty":            {nil, "cut off"},
		"half a size":      {encoded[:3], "cut off"},
		"no trie":          {[]byte{0, 0, 0, 0, 'a', 0}, "trie of 0 bytes"},
		"an odd trie":      {[]byte{5, 0, 0, 0, 1, 2, 3, 4, 5, 6}, "trie of 5 bytes"},
		"a cut trie":       {encoded[:size], "the file is damaged"},
		"an enormous trie": {[]byte{0xfc, 0xff, 0xff, 0xff, 1, 2, 3, 4}, "trie of 4294967292 bytes in 4"},
		"other texts":      {append(encoded[:4+size:4+size], 0xff, 0), "not UTF-8"},
	} {
		if m, err := newCharsmap(c.encoded); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v; want an error with %q", name, m, err, c.want)
		}
	}
}

// FuzzNormalize checks that neither a damaged map nor any text leads out of the tables, and that the result is valid
// UTF-8.
func FuzzNormalize(f *testing.F) {
	encoded, _ := charsmapRecorded(f)
	f.Add(uint32(0), uint32(4), "a")
	f.Add(uint32(4), uint32(1<<31-1), "ﬁ\u0301\r\n☺\u200d☺")
	f.Add(uint32(8), uint32(0xffffffff), "ab\xff")
	f.Fuzz(func(t *testing.T, at, unit uint32, text string) {
		damaged := bytes.Clone(encoded)
		binary.LittleEndian.PutUint32(damaged[at%uint32(len(damaged)-3):], unit)
		m, err := newCharsmap(damaged)
		if err != nil {
			return
		}
		if got := m.normalize(text); utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%q became %q, which is not UTF-8", text, got)
		}
	})
}
