package tokenizer

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const unigramSmall = `{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1],["b",-1.5],["ab",-2],["ba",-3e0],["é",-4]]}`

func TestUnigramRefused(t *testing.T) {
	for name, c := range map[string]struct{ model, want string }{
		"no object":            {`[]`, "read the Unigram model"},
		"cut off":              {unigramSmall[:60], "read the Unigram model"},
		"no vocabulary":        {`{"unk_id":0}`, "no vocabulary"},
		"an empty vocabulary":  {`{"unk_id":0,"vocab":[]}`, "unk_id 0 is none of its 0"},
		"no unknown token":     {`{"vocab":[["a",0]]}`, "no unk_id"},
		"a negative unk_id":    {`{"unk_id":-1,"vocab":[["a",0]]}`, "unk_id -1 is none of its 1"},
		"an unk_id too high":   {`{"unk_id":1,"vocab":[["a",0]]}`, "unk_id 1 is none of its 1"},
		"a token alone":        {`{"unk_id":0,"vocab":["a"]}`, `token 0 of the Unigram model: "a" is neither an array`},
		"no score":             {`{"unk_id":0,"vocab":[["a"]]}`, `["a"] has 1 elements`},
		"nothing":              {`{"unk_id":0,"vocab":[null]}`, `null is neither an array`},
		"a number as token":    {`{"unk_id":0,"vocab":[[1,2]]}`, "1 is not a string"},
		"three elements":       {`{"unk_id":0,"vocab":[["a",1,2]]}`, `["a",1,2] has 3 elements`},
		"a word as score":      {`{"unk_id":0,"vocab":[["a","b"]]}`, "not a finite number"},
		"an infinite score":    {`{"unk_id":0,"vocab":[["a",-1e999]]}`, "not a finite number"},
		"nested arrays":        {`{"unk_id":0,"vocab":[["a",[1]]]}`, "not a finite number"},
		"an enormous token":    {`{"unk_id":0,"vocab":[["` + strings.Repeat("a", longest+1) + `",0]]}`, "513 bytes"},
		"much text":            {`{"unk_id":0,"vocab":[["a",0]` + strings.Repeat(`,["`+strings.Repeat("a", longest)+`",0]`, maxBytes/longest) + `]}`, "at most 16777216 bytes together"},
		"many tokens":          {`{"unk_id":0,"vocab":[["a",0]` + strings.Repeat(`,["",0]`, maxTokens) + `]}`, "token 2097152 of the Unigram model: a model has at most"},
		"a vocabulary of maps": {`{"unk_id":0,"vocab":{"a":0}}`, `"a":0 is neither an array`},
	} {
		if m, err := newUnigram(json.RawMessage(c.model)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v; want an error with %q", name, m, err, c.want)
		}
	}
}

// TestScore has numbers with the values that the tokenizers library reads.
func TestScore(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "-7": -7, "1.5E3": 1500, "-0.0": 0, "-1e-320": -1e-320, "1.7976931348623157e308": 1.7976931348623157e308,
		"-2.2250738585072014e-308": -2.2250738585072014e-308, "123456789012345678901234567890": 1.2345678901234568e+29,
		"-0.1234567890123456789012345": -0.12345678901234568, "-11.118492126464844": -11.118492126464844,
		"-5.9604644775390625e-8": -5.960464477539063e-08, "-3.8241176605224609": -3.824117660522461,
		"-9.343525423345529": -9.343525423345527, // not the nearest
	} {
		if got, err := score(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestUnigramSmall(t *testing.T) {
	m, err := newUnigram(json.RawMessage(unigramSmall))
	if err != nil {
		t.Fatal(err)
	}
	if m.Size() != 6 {
		t.Errorf("size %d", m.Size())
	}
	for token, want := range map[string]int32{"<unk>": 0, "ab": 3, "é": 5, "": -1, "abb": -1, "<": -1, "z": -1} {
		if got, ok := m.ID(token); got != want || ok != (want >= 0) {
			t.Errorf("%q: id %d, %v", token, got, ok)
		}
	}
	for word, want := range map[string][]int32{"": {9}, "aba": {9, 3, 1}, "xxabyé": {9, 0, 3, 0, 5}, "\xff\xc3a": {9, 0, 1}} {
		if got := m.Append([]int32{9}, word); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", word, got, want)
		}
	}
}

// TestUnigramLong has a megabyte of words with many ways to cut, one with no way, and one of unknown characters.
func TestUnigramLong(t *testing.T) {
	m, err := newUnigram(json.RawMessage(unigramSmall))
	if err != nil {
		t.Fatal(err)
	}
	word := strings.Repeat("abé", 1<<18)
	all := m.Append(nil, word)
	if len(all) != 1<<19 {
		t.Errorf("%d tokens", len(all))
	}
	if got := m.Append(nil, strings.Repeat("ab", 1<<19)); len(got) != 1<<19 {
		t.Errorf("overlapping tokens: %d tokens", len(got))
	}
	if got := m.Append(nil, strings.Repeat("漢", 1<<19)+"a"); !slices.Equal(got, []int32{0, 1}) {
		t.Errorf("unknown characters: %v", got)
	}
}

// TestUnigramAgainstDefinition compares words of random models with the definition: the best sum of scores over all
// ways to cut a word.
func TestUnigramAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	word := func(longest int) string {
		var b strings.Builder
		for range 1 + rng.IntN(longest) {
			b.WriteString([]string{"a", "b", "c", "é", "x"}[rng.IntN(5)])
		}
		return b.String()
	}
	for range 400 {
		vocab := [][2]any{{"<unk>", 0}}
		for range 1 + rng.IntN(25) {
			vocab = append(vocab, [2]any{word(4), float64(-rng.IntN(8)) / 4})
		}
		raw, err := json.Marshal(map[string]any{"unk_id": 0, "vocab": vocab})
		if err != nil {
			t.Fatal(err)
		}
		m, err := newUnigram(raw)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			w := word(150)
			if got, want := m.Append(nil, w), unigramDefinition(m, w); !slices.Equal(got, want) {
				t.Fatalf("%s: %q: got %v, want %v", raw, w, got, want)
			}
		}
	}
}

// unigramDefinition cuts a word without windows and without a trie.
func unigramDefinition(m *unigram, word string) []int32 {
	best := make([]node, len(word)+1)
	for i := range best[1:] {
		best[i+1].from = -1
	}
	for at, r := range word {
		single := false
		for end := at + 1; end <= len(word); end++ {
			if id, ok := m.ID(word[at:end]); ok {
				if s := best[at].score + m.scores[id]; best[end].from < 0 || s > best[end].score {
					best[end] = node{s, id, int32(at)}
				}
				single = single || end == at+utf8.RuneLen(r)
			}
		}
		if end := at + utf8.RuneLen(r); !single {
			if s := best[at].score + m.unkScore; best[end].from < 0 || s > best[end].score {
				best[end] = node{s, m.unk, int32(at)}
			}
		}
	}
	var ids []int32
	unknown := 0 // where a run of unknown characters ends
	for end := len(word); end > 0; end = int(best[end].from) {
		if id := best[end].token; id != m.unk {
			ids = append(ids, id)
			continue
		}
		unknown = max(unknown, end)
		if from := best[end].from; from == 0 || best[from].token != m.unk {
			run, ok := m.ID(word[from:unknown])
			if !ok {
				run = m.unk
			}
			ids, unknown = append(ids, run), 0
		}
	}
	slices.Reverse(ids)
	return ids
}

func FuzzUnigramModel(f *testing.F) {
	f.Add(unigramSmall, "abxé\xff")
	f.Add(`{"unk_id":1,"byte_fallback":true,"vocab":[["<0x78>",0],["?",5],["",1],["a",-1],["a",-2]]}`, "axa")
	f.Fuzz(func(t *testing.T, model, word string) {
		m, err := newUnigram(json.RawMessage(model))
		if err != nil {
			return
		}
		ids := m.Append(nil, word)
		for _, id := range ids {
			if id < 0 || int(id) >= m.Size() {
				t.Errorf("%q: %v: ids run from 0 to %d", word, ids, m.Size()-1)
			}
		}
		if utf8.ValidString(word) && m.bytes == nil {
			if want := unigramDefinition(m, word); !slices.Equal(ids, want) {
				t.Errorf("%q: %v, want %v", word, ids, want)
			}
		}
	})
}
