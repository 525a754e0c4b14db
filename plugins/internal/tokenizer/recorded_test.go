package tokenizer

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// readRecorded decodes a file of testdata.
func readRecorded(t testing.TB, name string, v any) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".json.gz"))
	must.Do(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must.Do(t, err)
	must.Do(t, json.NewDecoder(z).Decode(v))
}

// kinds are the recorded tokenizers.
var kinds = []string{"uncased", "cased", "odd", "roberta", "prefix", "modern", "llama3", "xlmr", "albert", "metaspace", "llama2"}

// kind is a recorded tokenizer and what it makes of the texts.
type kind struct {
	Tokenizer json.RawMessage
	IDs       [][]int32
	Pairs     []struct {
		ids    []int32
		second int
	}
}

type known struct {
	tok   *Tokenizer
	kind  kind
	texts []string
}

var readKinds = map[string]known{}

// readKind reads a kind once for all tests.
func readKind(t testing.TB, name string) (*Tokenizer, kind, []string) {
	t.Helper()
	if k, ok := readKinds[name]; ok {
		return k.tok, k.kind, k.texts
	}
	var k struct {
		kind
		Pairs []json.RawMessage
	}
	readRecorded(t, name, &k)
	for _, p := range k.Pairs {
		k.kind.Pairs = append(k.kind.Pairs, struct {
			ids    []int32
			second int
		}{})
		last := &k.kind.Pairs[len(k.kind.Pairs)-1]
		parts(t, p, &last.ids, &last.second)
	}
	var texts []string
	readRecorded(t, "texts", &texts)
	tok, err := New(k.Tokenizer, name)
	must.Do(t, err)
	if len(texts) != 1000 || len(k.IDs) != 1000 || len(k.kind.Pairs) != 1000 {
		t.Fatalf("%d texts, %d ids, %d pairs", len(texts), len(k.IDs), len(k.kind.Pairs))
	}
	readKinds[name] = known{tok, k.kind, texts}
	return tok, k.kind, texts
}

// TestRecorded compares ids with the library's.
func TestRecorded(t *testing.T) {
	for _, name := range kinds {
		t.Run(name, func(t *testing.T) {
			tok, k, texts := readKind(t, name)
			wrong := 0
			for i, text := range texts {
				if got := tok.Encode(text, 1<<20); !slices.Equal(got, k.IDs[i]) {
					if wrong++; wrong < 9 {
						t.Errorf("%d %.120q: got %v, want %v", i, text, got[:min(len(got), 60)], k.IDs[i][:min(len(k.IDs[i]), 60)])
					}
				}
				limit := 5 + i%40
				want := slices.Clone(k.IDs[i])
				if specials := added(tok.template.single); len(want) > limit {
					after := added(tok.template.single[slices.IndexFunc(tok.template.single, func(p part) bool { return p.ids == nil }):])
					want = append(want[:limit-specials+added(tok.template.single)-after], want[len(want)-after:]...)
				}
				if got := tok.Encode(text, limit); !slices.Equal(got, want) && wrong < 9 {
					t.Errorf("%d %.120q: within %d: got %v, want %v", i, text, limit, got, want)
				}
			}
			if wrong > 0 {
				t.Errorf("%d texts have other ids", wrong)
			}
		})
	}
}

// TestRecordedPairs compares pairs, within limits, with the library's.
func TestRecordedPairs(t *testing.T) {
	for _, name := range kinds {
		t.Run(name, func(t *testing.T) {
			tok, k, texts := readKind(t, name)
			wrong := 0
			for i, a := range texts {
				b := texts[(i+500)%1000]
				ids, second := tok.EncodePair(a, b, 17+i%4)
				if want := k.Pairs[i]; !slices.Equal(ids, want.ids) || second != want.second {
					if wrong++; wrong < 9 {
						t.Errorf("%d %.60q %.60q: got %v from %d, want %v from %d", i, a, b, ids, second, want.ids, want.second)
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%d pairs have other ids", wrong)
			}
		})
	}
}

// TestLimit checks, by memory, that a long text is read only up to the limit.
func TestLimit(t *testing.T) {
	for _, name := range kinds {
		tok, _, _ := readKind(t, name)
		text := strings.Repeat("Ordinary words, é and 漢 among them, fill this long text ", 200_000)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tok.Encode(text, 64)
		tok.EncodePair("a question", text, 64)
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > uint64(len(text)/4) {
			t.Errorf("%s: %d bytes for a text of %d", name, taken, len(text))
		}
	}
}
