package tokenizer

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const bpeSmall = `{"type":"BPE","unk_token":"?","vocab":{"?":0,"a":1,"b":2,"c":3,"ab":4,"abc":5,"cc":6},
	"merges":[["a","b"],["ab","c"],["c","c"]]}`

func TestBpeRefused(t *testing.T) {
	for name, c := range map[string]struct{ model, want string }{
		"no object":          {`7`, "read the BPE model"},
		"cut off":            {bpeSmall[:50], "read the BPE model"},
		"no vocabulary":      {`{"merges":[]}`, "lacks its vocab"},
		"no merges":          {`{"vocab":{"a":0}}`, "lacks its vocab or its merges"},
		"dropout":            {`{"dropout":0.1,"vocab":{},"merges":[]}`, "dropout of 0.1"},
		"ids that are words": {`{"vocab":{"a":"0"},"merges":[]}`, `token "a" has the impossible id "0"`},
		"a fraction as id":   {`{"vocab":{"a":0.5},"merges":[]}`, `token "a" has the impossible id 0.5`},
		"a negative id":      {`{"vocab":{"a":-1},"merges":[]}`, `token "a" has the impossible id -1; ids are whole numbers from 0 to 16777215`},
		"an enormous id":     {`{"vocab":{"a":16777216},"merges":[]}`, `"a" has the impossible id 16777216`},
		"an id beyond int32": {`{"vocab":{"a":99999999999},"merges":[]}`, "99999999999"},
		"an id twice":        {`{"vocab":{"b":1,"a":1},"merges":[]}`, `tokens "a" and "b" have the same id 1`},
		"an unknown unknown": {`{"unk_token":"x","vocab":{"a":1},"merges":[]}`, `unk_token "x"`},
		"a merge of one":     {`{"vocab":{"a":1},"merges":[["a"]]}`, "merge 1: it has 1 tokens"},
		"a merge of three":   {`{"vocab":{"a":1},"merges":["a a a"]}`, "merge 1: it has 3 tokens"},
		"a merge of numbers": {`{"vocab":{"a":1},"merges":[[1,2]]}`, "merge 1: 1 is not a string"},
		"a merge of nothing": {`{"vocab":{"a":1,"":2},"merges":[["a",""]]}`, `merge 1: it joins "a" and ""`},
		"a prefix":           {`{"continuing_subword_prefix":"##","vocab":{"a":1,"b":2},"merges":[["a","b"]]}`, `marks of words ("##", "")`},
		"a suffix":           {`{"end_of_word_suffix":"</w>","vocab":{"a":1,"b":2},"merges":[["a","b"]]}`, `marks of words ("", "</w>")`},
		"a merge to nothing": {`{"vocab":{"a":1,"b":2},"merges":[["a","b"]]}`, `merge 1: it needs "a", "b" and "ab"`},
		"a merge of nobody":  {`{"vocab":{"a":1,"ax":2},"merges":[["a","x"]]}`, `needs "a", "x" and "ax"`},
		"an empty merge":     {`{"vocab":{"a":1},"merges":["#version: 0.2",[]]}`, "merge 2: it has 0 tokens"},
		"a list of tokens":   {`{"vocab":["a"],"merges":[]}`, "vocabulary"},
		"null as vocabulary": {`{"vocab":null,"merges":[]}`, "not an object"},
		"merges as map":      {`{"vocab":{"a":1},"merges":{"a":"a"}}`, "merge 1"},
		"many merges":        {`{"vocab":{"a":1,"aa":2},"merges":["a a"` + strings.Repeat(`,"a a"`, maxTokens) + `]}`, "merge 2097153: a model has at most 2097152"},
		"a merge of null":    {`{"vocab":{"a":1},"merges":[null]}`, "merge 1: null is neither"},
	} {
		if m, err := newBPE(json.RawMessage(c.model)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v; want an error with %q", name, m, err, c.want)
		}
	}
}

func TestBpeSmall(t *testing.T) {
	m, err := newBPE(json.RawMessage(bpeSmall))
	if err != nil {
		t.Fatal(err)
	}
	if m.Size() != 7 {
		t.Errorf("size %d", m.Size())
	}
	if id, ok := m.ID("abc"); id != 5 || !ok {
		t.Errorf("abc is %d, %v", id, ok)
	}
	if _, ok := m.ID("ac"); ok {
		t.Error("ac is a token")
	}
	for word, want := range map[string][]int32{"": {9}, "abcc": {9, 5, 3}, "cabccc": {9, 3, 5, 6}, "zz\xff": {9, 0, 0, 0}} {
		if got := m.Append([]int32{9}, word); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", word, got, want)
		}
	}
}

// TestLongWord has a word whose pairs are all joined. If the time grew with the square of its length, the test would
// not end.
func TestLongWord(t *testing.T) {
	vocab, merges := map[string]int{"a": 0}, [][2]string{}
	for n := 1; n < 1<<9; n *= 2 {
		half := strings.Repeat("a", n)
		vocab[half+half] = len(vocab)
		merges = append(merges, [2]string{half, half})
	}
	m := buildBpe(t, map[string]any{"vocab": vocab, "merges": merges})
	got := m.Append(nil, strings.Repeat("a", 1<<19+5))
	if want := 1<<10 + 2; len(got) != want {
		t.Errorf("%d tokens, want %d", len(got), want)
	}
}

func buildBpe(t testing.TB, model map[string]any) *bpe {
	t.Helper()
	raw, err := json.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newBPE(raw)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestBpeAgainstDefinition compares words of random models with the definition: of all adjacent pairs with a merge,
// the first of the lowest rank is joined, until there are none.
func TestBpeAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		tokens := []string{"a", "b", "c", "é", "?"}
		merges := [][2]string{}
		for range rng.IntN(30) {
			m := [2]string{tokens[rng.IntN(len(tokens))], tokens[rng.IntN(len(tokens))]}
			merges = append(merges, m)
			tokens = append(tokens, m[0]+m[1])
		}
		vocab := map[string]int{}
		for _, token := range tokens {
			if _, ok := vocab[token]; !ok {
				vocab[token] = len(vocab)
			}
		}
		if rng.IntN(4) == 0 {
			rng.Shuffle(len(merges), func(i, j int) { merges[i], merges[j] = merges[j], merges[i] })
		}
		unk := "?"
		if rng.IntN(3) == 0 {
			unk = tokens[rng.IntN(len(tokens))] // it may be what a merge makes
		}
		m := buildBpe(t, map[string]any{"vocab": vocab, "merges": merges, "unk_token": unk})
		for range 20 {
			var word strings.Builder
			for range rng.IntN(120) {
				word.WriteString([]string{"a", "b", "c", "é", "x"}[rng.IntN(5)])
			}
			got := m.Append(nil, word.String())
			if want := bpeDefinition(m, word.String()); !slices.Equal(got, want) {
				t.Fatalf("%v: %q: got %v, want %v", merges, word.String(), got, want)
			}
		}
	}
}

// bpeDefinition converts a word into ids step by step, without byte fallback and fused unknown tokens.
func bpeDefinition(m *bpe, word string) []int32 {
	var ids []int32
	for _, r := range word {
		if id := m.idOr(string(r)); id >= 0 {
			ids = append(ids, id)
		} else if m.unk >= 0 {
			ids = append(ids, m.unk)
		}
	}
	for {
		best, at := never, 0
		for i := range len(ids) - 1 {
			if j := m.join(ids[i], ids[i+1]); j.rank < best.rank {
				best, at = j, i
			}
		}
		if best == never {
			return ids
		}
		ids[at] = best.id
		ids = slices.Delete(ids, at+1, at+2)
	}
}

func FuzzBpeModel(f *testing.F) {
	f.Add(bpeSmall, "abccz\xff")
	f.Add(`{"vocab":{"a":1,"b":2,"ab":3},"merges":["#version: 0.2","a b"],"byte_fallback":true}`, "abb")
	f.Add(`{"vocab":{"a":2,"aa":3,"<0x78>":4,"?":5},"merges":[["a","a"]],"byte_fallback":true,"unk_token":"?","fuse_unk":true}`, "aax")
	f.Fuzz(func(t *testing.T, model, word string) {
		m, err := newBPE(json.RawMessage(model))
		if err != nil {
			return
		}
		ids := m.Append(nil, word)
		for _, id := range ids {
			if id < 0 || int(id) >= m.Size() {
				t.Errorf("%q: %v: ids run from 0 to %d", word, ids, m.Size()-1)
			}
		}
		if utf8.ValidString(word) && m.bytes == nil && !m.fuse && !m.whole {
			if want := bpeDefinition(m, word); !slices.Equal(ids, want) {
				t.Errorf("%q: %v, want %v", word, ids, want)
			}
		}
	})
}

// TestBytesThatAreMissing: if one byte of a character has no token, the whole character is unknown.
func TestBytesThatAreMissing(t *testing.T) {
	m := buildBpe(t, map[string]any{"vocab": map[string]int{"?": 0, "<0xC3>": 1, "<0xA9>": 2}, "merges": []string{}, "unk_token": "?", "byte_fallback": true})
	if got := m.Append(nil, "éè"); !slices.Equal(got, []int32{1, 2, 0}) {
		t.Errorf("%v", got)
	}
}
