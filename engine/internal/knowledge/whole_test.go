package knowledge_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// All entries are in the order of the documents, in whatever order the store got them.
func TestAll(t *testing.T) {
	long := "" // more than ten chunks, whose ids sort differently
	for i := range 12 {
		long += fmt.Sprintf("w%d ", i)
	}
	s := newShelf(t, map[string]string{"b.txt": long, "c.txt": "x y"})
	s.look(knowledge.Options{})
	s.write(map[string]string{"a.txt": "first of all"})
	k, _, _ := s.look(knowledge.Options{})
	all := must.Get(k.All(t.Context()))(t)
	var got []string
	for _, c := range all {
		got = append(got, c.Text)
		if !math.IsNaN(float64(c.Dense)) || !math.IsNaN(float64(c.Lexical)) || c.Score != 0 || c.Meta["document"] == nil {
			t.Errorf("the candidate %+v", c)
		}
	}
	if want := "first of all " + long + "x y"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	again, err := k.All(t.Context())
	if err != nil || &again[0] != &all[0] {
		t.Errorf("it is held twice; error %v", err)
	}
	extent, err := k.Extent(t.Context())
	if want := (rule.Extent{Entries: len(all), Tokens: (len(strings.Join(got, "")) + 3) / 4}); err != nil || extent != want {
		t.Errorf("the extent is %+v, error %v, want %+v", extent, err, want)
	}
}

// Rows are in the order of their ids. Contexts count, terms do not.
func TestAllRows(t *testing.T) {
	b := newBench(t)
	b.block.Sources[0].Context, b.block.Sources[0].Label = "label", "none"
	k, _ := b.open("2\tab\tcards", "1\tçd\t")
	all, err := k.All(t.Context())
	if err != nil || !slices.EqualFunc(all, []string{"1", "2"}, func(c sdk.Candidate, id string) bool { return c.ID == id }) {
		t.Errorf("got %+v, error %v", all, err)
	}
	if extent, err := k.Extent(t.Context()); err != nil || extent != (rule.Extent{Entries: 2, Tokens: 3}) {
		t.Errorf("the extent is %+v, error %v", extent, err)
	}
}
