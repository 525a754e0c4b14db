package tokenizer

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// recorded is what the library makes of texts with MiniLM's vocabulary, recorded with its
// vectors.
const recorded = "../encoder/testdata"

// lines calls f with every line of a recorded file.
func lines(t testing.TB, name string, f func(line []byte)) {
	t.Helper()
	file, err := os.Open(name)
	must.Do(t, err)
	defer file.Close()
	s := bufio.NewScanner(file)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		f(s.Bytes())
	}
	must.Do(t, s.Err())
}

// parts decodes a JSON array into the values that vs point to.
func parts(t testing.TB, line []byte, vs ...any) {
	t.Helper()
	if err := json.Unmarshal(line, &vs); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
}

// miniLM is the tokenizer of the vocabulary on this machine.
func miniLM(t testing.TB) *Tokenizer {
	t.Helper()
	dir, err := sdk.ModelDir("minilm")
	if err != nil {
		t.Skip(err)
	}
	if !exists(filepath.Join(dir, vocabFile)) {
		t.Skip("no model in ", dir)
	}
	tok, err := openVocab(dir)
	must.Do(t, err)
	return tok
}

func TestVocab(t *testing.T) {
	tok := miniLM(t)
	lines(t, filepath.Join(recorded, "tokens.jsonl"), func(line []byte) {
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

const smallVocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##able\n##a\n!\nable\nUn\n"

func small(t testing.TB, s settings) *Tokenizer {
	t.Helper()
	tok, err := newVocab([]byte(smallVocab), s)
	must.Do(t, err)
	return tok
}

var uncased settings

func TestSmallVocab(t *testing.T) {
	tok := small(t, uncased)
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
	if got := small(t, settings{Lower: new(bool)}).Encode("Unable un", 9); !slices.Equal(got, []int32{2, 10, 6, 5, 3}) {
		t.Errorf("cased: %v", got)
	}
	for limit := range 4 {
		if got := tok.Encode("un un", limit); len(got) > max(limit, 2) {
			t.Errorf("%d tokens of %d", len(got), limit)
		}
	}
}

func TestPairs(t *testing.T) {
	tok := small(t, uncased)
	for _, c := range []struct {
		a, b   string
		limit  int
		ids    []int32
		second int
	}{
		{"un", "able", 9, []int32{2, 5, 3, 9, 3}, 3},
		{"", "", 9, []int32{2, 3, 3}, 2},
		{"un un un un", "able", 7, []int32{2, 5, 5, 5, 3, 9, 3}, 5},
		{"un", "! ! ! !", 7, []int32{2, 5, 3, 8, 8, 8, 3}, 3},
		{"un un un un", "! ! ! ! !", 8, []int32{2, 5, 5, 3, 8, 8, 8, 3}, 4},
		{"un un un un un", "! ! ! !", 8, []int32{2, 5, 5, 5, 3, 8, 8, 3}, 5},
		{"un", "!", 2, []int32{2, 3, 3}, 2},
	} {
		ids, second := tok.EncodePair(c.a, c.b, c.limit)
		if !slices.Equal(ids, c.ids) || second != c.second {
			t.Errorf("%q, %q: %v from %d, want %v from %d", c.a, c.b, ids, second, c.ids, c.second)
		}
	}
}

func TestVocabWithoutSpecial(t *testing.T) {
	for _, name := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		_, err := newVocab([]byte(strings.Replace(smallVocab, name, "x", 1)), uncased)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: error %v", name, err)
		}
	}
}

// TestEach compares the number of tokens with Encode's.
func TestEach(t *testing.T) {
	tok := miniLM(t)
	texts := 0
	lines(t, filepath.Join(recorded, "tokens.jsonl"), func(line []byte) {
		var text string
		var ids []int32
		parts(t, line, &text, &ids)
		long := slices.ContainsFunc(strings.Fields(text), func(s string) bool { return utf8.RuneCountInString(s) > 50 })
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

func FuzzVocab(f *testing.F) {
	tok := small(f, uncased)
	f.Add("un[CLS]é\x00漢[")
	f.Fuzz(func(t *testing.T, text string) {
		ids := tok.Encode(text, 16)
		if len(ids) < 2 || len(ids) > 16 || ids[0] != 2 || ids[len(ids)-1] != 3 {
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

func BenchmarkEncode(b *testing.B) {
	tok := miniLM(b)
	text := strings.Repeat("Retrieval finds passages that may answer a question, such as this one. ", 12)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.Encode(text, 1<<20)
	}
}
