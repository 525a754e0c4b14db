package estimate

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// What services may cache: a beginning of at least 1,024 tokens that an earlier request
// had, in steps of 128.
func TestCachedTokens(t *testing.T) {
	text := func(first string, tokens int) sdk.Prompt {
		return sdk.Prompt{Text: first + strings.Repeat("abcd", tokens)}
	}
	chat := func(item string) sdk.Prompt {
		return sdk.Prompt{Messages: []sdk.Message{{Role: "system", Text: strings.Repeat("abcd", 2000)}, {Role: "user", Text: item}}}
	}
	tests := map[string]struct {
		samples int
		items   [][]sdk.Prompt
		want    uint64
	}{
		"nothing before":            {1, [][]sdk.Prompt{{text("", 3000)}}, 0},
		"the same again":            {1, [][]sdk.Prompt{{text("", 3000)}, {text("", 3000)}}, 2944},
		"it begins differently":     {1, [][]sdk.Prompt{{text("x", 3000)}, {text("y", 3000)}}, 0},
		"too short":                 {1, [][]sdk.Prompt{{text("", 1000)}, {text("", 1000)}}, 0},
		"just long enough":          {1, [][]sdk.Prompt{{text("", 1024)}, {text("", 1024)}}, 1024},
		"the beginning of a longer": {1, [][]sdk.Prompt{{text("", 1200)}, {text("", 3000)}}, 1152},
		"a shared system message":   {1, [][]sdk.Prompt{{chat("one")}, {chat("two")}, {chat("three")}}, 2 * 1920},
		"prompts of one item":       {3, [][]sdk.Prompt{{text("", 1100), text("", 1100), text("x", 1100)}}, 1024},
	}
	for name, test := range tests {
		d := NewDryRun()
		s := &pipeline.Stage{Name: "llm", N: test.samples, Config: pipeline.Config{Public: []byte(`{}`)}}
		for _, prompts := range test.items {
			if _, err := d.Sampler(s, nil).Sample(t.Context(), sdk.Batch{Items: []sdk.Item{{Prompts: prompts}}}); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.Voter("llm").Likely.CachedTokens; got != test.want {
			t.Errorf("%s: %d tokens may be cached, want %d", name, got, test.want)
		}
	}
}
