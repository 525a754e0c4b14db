package cut

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

const shared = "../../../../shared/data/"

// texts are those of a file of real data.
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

func TestRatio(t *testing.T) {
	w, _ := Named("words")
	m, err := Named("minilm")
	if err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"scifact/corpus.jsonl", "anthropic_codebases/chunks.jsonl"} {
		a, b, c := 0, 0, 0
		lo, hi := 9., 0.
		for _, text := range texts(t, name) {
			x := w.Read(text).Tokens(0, len(text))
			y := m.Read(text).Tokens(0, len(text))
			a += x
			b += y
			c += len(text)
			if y > 50 {
				r := float64(y) / float64(x)
				lo, hi = min(lo, r), max(hi, r)
			}
		}
		t.Logf("%s: %d words, %d pieces: ratio %.3f (%.2f to %.2f), bytes per words %.2f", name, a, b, float64(b)/float64(a), lo, hi, float64(c)/float64(a))
	}
}
