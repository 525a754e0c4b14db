package tokenizer

import (
	"fmt"
	"strings"
	"testing"
)

func TestModel(t *testing.T) {
	for name, c := range map[string]struct {
		model, word, ids string
	}{
		"pieces":         {`{"vocab": {"[UNK]": 0, "un": 1, "##aff": 2, "##able": 3, "##a": 4}}`, "unaffable", "[1 2 3]"},
		"longest first":  {`{"vocab": {"[UNK]": 0, "a": 1, "ab": 2, "##c": 3, "##bc": 4}}`, "abc", "[2 3]"},
		"no way back":    {`{"vocab": {"[UNK]": 0, "a": 1, "ab": 2, "##bc": 4}}`, "abc", "[0]"},
		"other prefix":   {`{"vocab": {"?": 0, "a": 1, "@b": 2}, "unk_token": "?", "continuing_subword_prefix": "@"}`, "ab", "[1 2]"},
		"no prefix":      {`{"vocab": {"[UNK]": 0, "a": 1, "b": 2}, "continuing_subword_prefix": ""}`, "ba", "[2 1]"},
		"prefix alone":   {`{"vocab": {"[UNK]": 0, "##": 1, "##a": 2}}`, "##a", "[2]"},
		"long word":      {`{"vocab": {"[UNK]": 0, "é": 1, "##é": 2}, "max_input_chars_per_word": 3}`, "éééé", "[0]"},
		"not too long":   {`{"vocab": {"[UNK]": 0, "é": 1, "##é": 2}, "max_input_chars_per_word": 3}`, "ééé", "[1 2 2]"},
		"useless tokens": {`{"vocab": {"[UNK]": 0, "a": 1, "` + strings.Repeat("x", 999) + `": 2}}`, "a", "[1]"},
		"part of a rune": {`{"vocab": {"[UNK]": 0, "漢": 1, "##字": 2, "a": 3}}`, "漢字", "[1 2]"},
	} {
		m, err := newWordPiece([]byte(c.model))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(m.Append(nil, c.word)); got != c.ids {
			t.Errorf("%s: %s, want %s", name, got, c.ids)
		}
	}
}

func TestReadVocab(t *testing.T) {
	m, err := readVocab(strings.NewReader("[UNK]\r\na\na\n##b"))
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := m.ID("a"); m.Size() != 4 || id != 2 || !ok {
		t.Errorf("size %d, id %d, %t", m.Size(), id, ok)
	}
}
