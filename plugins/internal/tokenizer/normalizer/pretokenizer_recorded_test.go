package normalizer

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"unicode"
)

// pretokenizerRecorded is what the library makes of texts and of all characters; testdata/record.py of
// package tokenizer asked it.
type pretokenizerRecorded struct {
	Texts         []string
	PreTokenizers [][2]json.RawMessage `json:"pre_tokenizers"`
	Characters    map[string]json.RawMessage
}

func pretokenizerReadRecorded(t *testing.T) (r pretokenizerRecorded) {
	t.Helper()
	f, err := os.Open("../testdata/parts.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPretokenizerRecorded(t *testing.T) {
	r := pretokenizerReadRecorded(t)
	for _, row := range r.PreTokenizers {
		p, err := NewPreTokenizer(row[0], false)
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		var want [][]string
		if err := json.Unmarshal(row[1], &want); err != nil || len(want) < 100 {
			t.Fatal(len(want), err)
		}
		for i, text := range r.Texts {
			if got := slices.Collect(p.Split(text, true)); !slices.Equal(got, want[i]) {
				t.Errorf("%s: %q: got %q, want %q", row[0], text, got, want[i])
			}
		}
	}
}

// TestPretokenizerCharacters compares the classes of every character that Go's tables know.
func TestPretokenizerCharacters(t *testing.T) {
	matches := func(expression string) func(rune) bool {
		p, err := compilePattern(expression)
		if err != nil {
			t.Fatal(err)
		}
		return func(r rune) bool {
			return p.spans(string(r))[0].match
		}
	}
	r := pretokenizerReadRecorded(t)
	in := map[string]func(rune) bool{"Digits": unicode.IsNumber, "WhitespaceSplit": IsSpace, "Punctuation": isPunct, "Whitespace": IsWord}
	for _, expression := range []string{`\p{L}`, `\p{N}`, `\s`, `\p{M}`, `\p{P}`, `\p{Lu}`} {
		in[expression] = matches(expression)
	}
	known := []rune{0x111c9} // a mark that was punctuation
	for name, in := range in {
		var runs [][2]rune
		if err := json.Unmarshal(r.Characters[name], &runs); err != nil {
			t.Fatal(name, err)
		}
		for c := rune(1); c <= unicode.MaxRune; c++ {
			if 0xd800 <= c && c < 0xe000 || unicode.Is(unicode.Cn, c) {
				continue
			}
			for len(runs) > 0 && runs[0][1] < c {
				runs = runs[1:]
			}
			want := len(runs) > 0 && runs[0][0] <= c
			if got := in(c); got != want && !slices.Contains(known, c) {
				t.Errorf("%s: %U is %t, want %t", name, c, got, want)
			}
		}
	}
}
