package chunk

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

const shared = "../../../../shared/data/"

// texts returns the texts in a file of real data.
func texts(t testing.TB, name string) []string {
	t.Helper()
	f, err := os.Open(shared + name)
	if err != nil {
		t.Skip("no data: ", err)
	}
	defer f.Close()
	var all []string
	for s := json.NewDecoder(bufio.NewReader(f)); s.More(); {
		var row struct{ Text string }
		if err := s.Decode(&row); err != nil {
			t.Fatal(err)
		}
		all = append(all, row.Text)
	}
	return all
}

func named(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tok, err := Named(name)
	if name == "minilm" && err != nil {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestWordsAreNear checks that counts of words are close enough to minilm's for choosing a size.
func TestWordsAreNear(t *testing.T) {
	words, pieces := named(t, "words"), named(t, "minilm")
	for _, name := range []string{"scifact/corpus.jsonl", "anthropic_codebases/chunks.jsonl"} {
		a, b, count, near := 0, 0, 0, 0
		for _, text := range texts(t, name) {
			x, y := words.Read(text).Tokens(0, len(text)), pieces.Read(text).Tokens(0, len(text))
			a, b = a+x, b+y
			count++
			if r := float64(y) / float64(x); r > .75 && r < 1.33 {
				near++
			}
		}
		ratio := float64(b) / float64(a)
		t.Logf("%s: %.3f tokens of minilm for a word; %.1f %% of texts between .75 and 1.33", name, ratio, 100*float64(near)/float64(count))
		if ratio < .85 || ratio > 1.2 {
			t.Errorf("%s: %.3f tokens of minilm for a word", name, ratio)
		}
	}
}

// TestTokens checks where tokens begin: at the | of each text.
func TestTokens(t *testing.T) {
	for name, all := range map[string][]string{
		"words":      {"|one |two|-|abcdef|ghijkl|m|!|!", "|我|丢|了|か|한|글", "|naïve |e\u0301", "|😀|…", " \n\t", "|a\n|\x00", "|x1|.|5"},
		"characters": {"|o|n|e |t|w", "|我 |é"},
	} {
		for _, marked := range all {
			text := strings.ReplaceAll(marked, "|", "")
			var got []int
			named(t, name).begin(text, func(i int) { got = append(got, i) })
			var want []int
			at := 0
			for i, part := range strings.Split(marked, "|") {
				if i > 0 {
					want = append(want, at)
				}
				at += len(part)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s of %q: begin at %v, want %v", name, text, got, want)
			}
		}
	}
	if _, err := Named("bytes"); !errors.As(err, new(*sdk.ArgumentError)) {
		t.Errorf("an unknown tokenizer: %v", err)
	}
}

// TestCounts compares Text with counting one by one.
func TestCounts(t *testing.T) {
	for _, name := range []string{"words", "characters", "minilm"} {
		text := strings.Repeat("Some words, é漢字한국 unbelievably long.\n\n", 12)
		tok := named(t, name)
		x := tok.Read(text)
		var begins []int
		tok.begin(text, func(i int) { begins = append(begins, i) })
		for start := 0; start < len(text); start++ {
			if !utf8.RuneStart(text[start]) {
				continue
			}
			for _, end := range []int{start, start + (len(text)-start)/3, len(text)} {
				want := 0
				for _, b := range begins {
					if b >= start && b < end {
						want++
					}
				}
				if got := x.Tokens(start, end); got != want {
					t.Fatalf("%s: %d tokens from %d to %d, want %d", name, got, start, end, want)
				}
			}
			for _, n := range []int{3, 64, 1000} {
				end := x.forward(start, n, len(text))
				if got := x.Tokens(start, end); got > n || end <= start || end < len(text) && got < n-3 {
					t.Fatalf("%s: %d tokens from %d are %d, up to %d", name, n, start, got, end)
				}
			}
		}
	}
}
