package unigram

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// record is a line of the recorded file: a model, and what the tokenizers library makes of words.
type record struct {
	Name  string
	Model json.RawMessage
	Words []word
}

type word struct {
	text string
	ids  []int32
}

// UnmarshalJSON reads an array of the two.
func (w *word) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&w.text, &w.ids})
}

// records reads the recorded file, which has at least a number of variants.
func records(t testing.TB, least int) []record {
	t.Helper()
	file, err := os.Open("testdata/recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []record
	for lines := json.NewDecoder(file); lines.More(); {
		var r record
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

func TestRecorded(t *testing.T) {
	for _, r := range records(t, 6) {
		t.Run(r.Name, func(t *testing.T) {
			m, err := New(r.Model)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range r.Words {
				if got := m.Append(nil, w.text, 1<<30); !slices.Equal(got, w.ids) {
					t.Errorf("%q: got %v, want %v", w.text, got, w.ids)
				}
			}
		})
	}
}
