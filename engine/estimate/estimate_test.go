package estimate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

func TestRehearsal(t *testing.T) {
	text := func(n int) string { return strings.Repeat("ä", n) }
	chat := sdk.Prompt{Messages: []sdk.Message{{Text: text(10)}, {Text: text(11)}}, Fields: []string{sdk.LabelProperty}}
	tests := []struct {
		name    string
		n       int
		config  string
		prompts []sdk.Prompt
		want    Voter
	}{
		{"one prompt for all samples", 3, `{"max_tokens": 5}`, []sdk.Prompt{{Text: text(41)}},
			Voter{Items: 1, Prompts: 1, Answers: 3, Input: 11, Output: 15}},
		{"one for each", 2, `{"max_tokens": 5}`, []sdk.Prompt{{Text: text(4)}, {Text: text(8)}, {Text: text(400)}},
			Voter{Items: 1, Prompts: 2, Answers: 2, Input: 3, Output: 10}},
		{"a chat", 1, `{"max_tokens": 0}`, []sdk.Prompt{chat},
			Voter{Items: 1, Prompts: 1, Answers: 1, Input: 6, Output: JSONAnswer, Assumed: true}},
		{"passages", 2, `{}`, []sdk.Prompt{{Text: text(4), Passages: []string{"p"}}},
			Voter{Items: 1, Prompts: 1, Answers: 2, Input: 1, Output: 2 * CitedAnswer, Assumed: true}},
		{"none of the engine's", 1, `{}`, nil,
			Voter{Items: 1, Prompts: 1, Answers: 1, Input: 1, Output: LabelAnswer, Assumed: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := New()
			stage := &pipeline.Stage{Name: "llm", N: test.n, Config: pipeline.Config{Public: json.RawMessage(test.config)}}
			item := sdk.Item{Text: "text", Prompts: test.prompts}
			samples, err := r.Sampler(stage).Sample(t.Context(), sdk.Batch{Items: []sdk.Item{item}})
			if err != nil || len(samples) != 1 || len(samples[0]) != 0 {
				t.Fatalf("samples %v, error %v", samples, err)
			}
			got := r.Voter("llm")
			if test.prompts != nil {
				test.want.Shown = &test.prompts[0]
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(Voter{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := New().Voter("other"); got != (Voter{}) {
		t.Errorf("a voter that was not asked: %+v", got)
	}
}

func TestEnrichment(t *testing.T) {
	s := &pipeline.Stage{Config: pipeline.Config{Public: []byte(`{}`)}}
	if u, assumed := Enrichment(s, 3, 401); !assumed || u.InputTokens != 101+3*Instructions || u.OutputTokens != 3*Addition {
		t.Errorf("%+v, %v", u, assumed)
	}
	s.Config.Public = []byte(`{"max_tokens": 20}`)
	if u, assumed := Enrichment(s, 3, 401); assumed || u.OutputTokens != 60 {
		t.Errorf("%+v, %v", u, assumed)
	}
}
