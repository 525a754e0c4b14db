package tokenizer

import (
	"fmt"
	"strings"
	"testing"
)

func TestModel(t *testing.T) {
	for name, c := range map[string]struct {
		model, word, ids, starts string
	}{
		"pieces":         {`{"vocab": {"[UNK]": 0, "un": 1, "##aff": 2, "##able": 3, "##a": 4}}`, "unaffable", "[1 2 3]", "[0 2 5]"},
		"longest first":  {`{"vocab": {"[UNK]": 0, "a": 1, "ab": 2, "##c": 3, "##bc": 4}}`, "abc", "[2 3]", "[0 2]"},
		"no way back":    {`{"vocab": {"[UNK]": 0, "a": 1, "ab": 2, "##bc": 4}}`, "abc", "[0]", "[0]"},
		"other prefix":   {`{"vocab": {"?": 0, "a": 1, "@b": 2}, "unk_token": "?", "continuing_subword_prefix": "@"}`, "ab", "[1 2]", "[0 1]"},
		"no prefix":      {`{"vocab": {"[UNK]": 0, "a": 1, "b": 2}, "continuing_subword_prefix": ""}`, "ba", "[2 1]", "[0 1]"},
		"prefix alone":   {`{"vocab": {"[UNK]": 0, "##": 1, "##a": 2}}`, "##a", "[2]", "[0]"},
		"long word":      {`{"vocab": {"[UNK]": 0, "é": 1, "##é": 2}, "max_input_chars_per_word": 3}`, "éééé", "[0]", "[0]"},
		"not too long":   {`{"vocab": {"[UNK]": 0, "é": 1, "##é": 2}, "max_input_chars_per_word": 3}`, "ééé", "[1 2 2]", "[0 2 4]"},
		"useless tokens": {`{"vocab": {"[UNK]": 0, "a": 1, "` + strings.Repeat("x", 999) + `": 2}}`, "a", "[1]", "[0]"},
		"part of a rune": {`{"vocab": {"[UNK]": 0, "漢": 1, "##字": 2, "a": 3}}`, "漢字", "[1 2]", "[0 3]"},
	} {
		m, err := NewWordPiece([]byte(c.model))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(m.Append(nil, c.word, 99)); got != c.ids {
			t.Errorf("%s: %s, want %s", name, got, c.ids)
		}
		if got := fmt.Sprint(m.Pieces(nil, c.word)); got != c.starts {
			t.Errorf("%s: pieces at %s, want %s", name, got, c.starts)
		}
	}
}

func TestReadVocab(t *testing.T) {
	m, err := ReadVocab(strings.NewReader("[UNK]\r\na\na\n##b"))
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := m.ID("a"); m.Size() != 4 || id != 2 || !ok {
		t.Errorf("size %d, id %d, %t", m.Size(), id, ok)
	}
}
