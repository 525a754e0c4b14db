package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// unigramRecord is a line of the recorded file: a model, and what the tokenizers library makes of words.
type unigramRecord struct {
	Name  string
	Model json.RawMessage
	Words []unigramWord
}

type unigramWord struct {
	text string
	ids  []int32
}

// UnmarshalJSON reads an array of the two.
func (w *unigramWord) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&w.text, &w.ids})
}

// unigramRecords reads the recorded file, which has at least a number of variants.
func unigramRecords(t testing.TB, least int) []unigramRecord {
	t.Helper()
	file, err := os.Open("testdata/unigram.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []unigramRecord
	for lines := json.NewDecoder(file); lines.More(); {
		var r unigramRecord
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

func TestUnigramRecorded(t *testing.T) {
	for _, r := range unigramRecords(t, 6) {
		t.Run(r.Name, func(t *testing.T) {
			m, err := NewUnigram(r.Model)
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
