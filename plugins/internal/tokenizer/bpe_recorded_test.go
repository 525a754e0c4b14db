package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// bpeRecord is a line of the recorded file: a model, and what the tokenizers library makes of words.
type bpeRecord struct {
	Name  string
	Model json.RawMessage
	Words []bpeWord
}

type bpeWord struct {
	text string
	ids  []int32
}

// UnmarshalJSON reads an array of the two.
func (w *bpeWord) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&w.text, &w.ids})
}

// bpeRecords reads the recorded file, which has at least a number of variants.
func bpeRecords(t testing.TB, least int) []bpeRecord {
	t.Helper()
	file, err := os.Open("testdata/bpe.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []bpeRecord
	for lines := json.NewDecoder(file); lines.More(); {
		var r bpeRecord
		if err := lines.Decode(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if len(all) < least {
		t.Fatalf("%d variants", len(all))
	}
	return all
}

func TestBpeRecorded(t *testing.T) {
	for _, r := range bpeRecords(t, 10) {
		t.Run(r.Name, func(t *testing.T) {
			m, err := NewBPE(r.Model)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range r.Words {
				if got := m.Append(nil, w.text); !slices.Equal(got, w.ids) {
					t.Errorf("%q: got %v, want %v", w.text, got, w.ids)
				}
			}
		})
	}
}
