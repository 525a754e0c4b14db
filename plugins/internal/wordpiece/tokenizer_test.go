package wordpiece

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// recorded is what the original makes of texts, recorded with the vectors.
const recorded = "../../embed/minilm/testdata"

// lines calls f with every line of a recorded file.
func lines(t testing.TB, name string, f func(line []byte)) {
	t.Helper()
	file, err := os.Open(filepath.Join(recorded, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		f(s.Bytes())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

// parts decodes a JSON array into the values that vs point to.
func parts(t testing.TB, line []byte, vs ...any) {
	t.Helper()
	if err := json.Unmarshal(line, &vs); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
}

// TestCharacters compares every character between two letters with the original.
func TestCharacters(t *testing.T) {
	// A mark that was punctuation, and one that the original does not decompose.
	known := []rune{0x111C9, 0x11938}
	differ := 0
	lines(t, "characters.jsonl", func(line []byte) {
		var first, last rune
		var class string
		parts(t, line, &first, &last, &class)
		for r := first; r <= last; r++ {
			c := string(r)
			want, becomes := strings.CutPrefix(class, "to ")
			if !becomes {
				want = map[string]string{"drop": "ab", "space": "a b", "alone": "a " + c + " b", "keep": "a" + c + "b"}[class]
			}
			got := strings.Join(slices.Collect(words("a"+c+"b")), " ")
			switch {
			case got == want || slices.Contains(known, r):
			case unicode.Is(unicode.Cn, r):
				differ++ // assigned later than Go's tables
			default:
				t.Errorf("%U: got %q, want %q", r, got, want)
			}
		}
	})
	if differ > 60 {
		t.Errorf("%d characters that Go's tables lack come out differently; doc.go says about sixty", differ)
	}
}

func TestEncodeTokens(t *testing.T) {
	tok := realTokenizer(t)
	lines(t, "tokens.jsonl", func(line []byte) {
		var text string
		var want []int32
		parts(t, line, &text, &want)
		if got := tok.Encode(text, 256); !slices.Equal(got, want) {
			t.Errorf("%.80q: got %v, want %v", text, got, want)
		}
	})
	if got := tok.Encode("caf\xe9 \xff", 256); !slices.Equal(got, tok.Encode("caf", 256)) {
		t.Errorf("bytes that are not UTF-8 are not dropped: %v", got)
	}
}

func realTokenizer(t testing.TB) *Tokenizer {
	t.Helper()
	dir, err := sdk.ModelDir("minilm")
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(dir, "vocab.txt")
	file, err := os.Open(path)
	if err != nil {
		t.Skip("no model: ", err)
	}
	defer file.Close()
	tok, err := New(file, path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

const smallVocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##able\n##a\n!\nable\n"

func TestSmallVocabulary(t *testing.T) {
	tok, err := New(strings.NewReader(smallVocab), "vocab.txt")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{
		"":                {2, 3},
		"Unable":          {2, 5, 6, 3},
		"una able!":       {2, 5, 7, 9, 8, 3},
		"unx un":          {2, 1, 5, 3},
		"un[MASK]able":    {2, 5, 4, 9, 3},
		"un un un un un":  {2, 5, 5, 5, 5, 3},
		"[SEP]!!!!!!!!!!": {2, 3, 8, 8, 8, 3},
		"un unablea":      {2, 5, 5, 6, 7, 3},
		"un un unableaaa": {2, 5, 5, 5, 6, 3},
	} {
		if got := tok.Encode(text, 6); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestVocabularyWithoutSpecial(t *testing.T) {
	for _, name := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		_, err := New(strings.NewReader(strings.Replace(smallVocab, name, "x", 1)), "vocab.txt")
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: error %v", name, err)
		}
	}
}

func FuzzTokenizer(f *testing.F) {
	tok, err := New(strings.NewReader(smallVocab), "vocab.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("un[CLS]é\x00漢[")
	f.Fuzz(func(t *testing.T, text string) {
		ids := tok.Encode(text, 16)
		if len(ids) < 2 || len(ids) > 16 || ids[0] != tok.cls || ids[len(ids)-1] != tok.sep {
			t.Errorf("%q: %v", text, ids)
		}
		last := -1
		tok.Each(text, func(at int) {
			if at <= last || at >= len(text) {
				t.Errorf("%q: a token at byte %d after one at %d", text, at, last)
			}
			last = at
		})
	})
}

// TestEach compares the number of tokens with what Encode makes of the texts.
func TestEach(t *testing.T) {
	tok := realTokenizer(t)
	texts := 0
	lines(t, "tokens.jsonl", func(line []byte) {
		var text string
		var ids []int32
		parts(t, line, &text, &ids)
		long := slices.ContainsFunc(strings.Fields(text), func(s string) bool { return utf8.RuneCountInString(s) > maxWord/2 })
		if strings.Contains(text, "[") || long {
			return // special tokens and long words are other ones to Encode
		}
		last, count := -1, 0
		tok.Each(text, func(at int) {
			if at <= last || at >= len(text) {
				t.Errorf("%.80q: a token at byte %d after one at %d", text, at, last)
			}
			last = at
			count++
		})
		texts++
		if want := len(tok.Encode(text, 1<<20)) - 2; want != count {
			t.Errorf("%.80q: %d tokens, Encode has %d", text, count, want)
		}
	})
	if texts < 100 {
		t.Errorf("only %d texts", texts)
	}
}
