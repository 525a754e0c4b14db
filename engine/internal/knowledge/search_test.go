package knowledge_test

import (
	"testing"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// What stands around a chunk is that of its own document, as far as it reaches.
func TestAround(t *testing.T) {
	s := newShelf(t, map[string]string{"a.txt": "w0 w1 w2 w3 w4 w5 ", "b.txt": "x y"})
	k, _, _ := s.look(knowledge.Options{})
	all := must.Get(k.All(t.Context()))(t)
	of := func(id string) sdk.Candidate {
		for _, c := range all {
			if c.ID == id {
				return c
			}
		}
		t.Fatalf("there is no %s", id)
		return sdk.Candidate{}
	}
	first, second, third := of("a.txt#0").Text, of("a.txt#1").Text, of("a.txt#2").Text
	for name, test := range map[string]struct {
		c    sdk.Candidate
		n    int
		want string
	}{
		"both sides": {of("a.txt#1"), 1, first + "\n" + second + "\n" + third},
		"the first":  {of("a.txt#0"), 1, first + "\n" + second},
		"far":        {of("b.txt#0"), 9, "x\ny"},
		"a row":      {sdk.Candidate{ID: "a.txt#1", Text: "itself"}, 1, "itself"},
		"gone":       {sdk.Candidate{ID: "a.txt#99", Text: "itself", Meta: sdk.Meta{"document": "a.txt"}}, 1, "itself"},
	} {
		if got, err := k.Around(t.Context(), test.c, test.n); err != nil || got.Text != test.want || got.ID != test.c.ID {
			t.Errorf("%s: %q, %v, want %q", name, got.Text, err, test.want)
		}
	}
}
