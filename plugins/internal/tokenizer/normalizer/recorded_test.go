package normalizer

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"
	"unicode"
)

// recorded is what the library makes of texts and of all characters; testdata/record.py of
// package tokenizer asked it.
type recorded struct {
	Texts       []string
	Normalizers [][2]json.RawMessage
	Characters  map[string]json.RawMessage
}

func readRecorded(t *testing.T) (r recorded) {
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

func TestRecorded(t *testing.T) {
	r := readRecorded(t)
	for _, row := range r.Normalizers {
		n, err := New(row[0])
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		var want []string
		if err := json.Unmarshal(row[1], &want); err != nil || len(want) < 100 {
			t.Fatal(len(want), err)
		}
		for i, text := range r.Texts {
			if got := n.String(text); got != want[i] {
				t.Errorf("%s: %q: got %q, want %q", row[0], text, got, want[i])
			}
		}
	}
}

// TestCharacters compares every character between two letters, apart from Hangul.
func TestCharacters(t *testing.T) {
	r := readRecorded(t)
	for name, most := range map[string]struct{ assigned, others int }{
		"StripAccents": {0, 0}, "Lowercase": {0, 60}, "NFC": {0, 0}, "NFD": {1, 0}, "NFKD": {135, 0},
	} {
		var rows [][2]any
		if err := json.Unmarshal(r.Characters[name], &rows); err != nil {
			t.Fatal(err)
		}
		changed := map[rune]string{}
		for _, row := range rows {
			changed[rune(row[0].(float64))] = row[1].(string)
		}
		n, err := New([]byte(`{"type": "` + name + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		assigned, others := 0, 0
		for c := rune(1); c <= unicode.MaxRune; c++ {
			if 0xac00 <= c && c < 0xe000 {
				continue
			}
			want, ok := changed[c]
			if !ok {
				want = string(c)
			}
			if got := n.String("q" + string(c) + "q"); got != "q"+want+"q" {
				if assigned++; unicode.Is(unicode.Cn, c) {
					assigned, others = assigned-1, others+1
				}
			}
		}
		if assigned > most.assigned || others > most.others {
			t.Errorf("%s: %d characters, and %d that Go's tables lack, differ", name, assigned, others)
		}
	}
}
