package plan

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/sdk"
)

// asked is a voter that forecasts as many tokens for an item as its number.
type asked struct{ forecasts []sdk.Forecast }

func (a *asked) Forecast(item sdk.Item) (sdk.Forecast, error) {
	if item.Text == "broken" {
		return sdk.Forecast{}, errors.New("it cannot be asked")
	}
	return a.forecasts[item.Drawn], nil
}

func TestDryRun(t *testing.T) {
	text := func(n int) string { return strings.Repeat("ä", n) }
	chat := sdk.Prompt{Messages: []sdk.Message{{Text: text(10)}, {Text: text(11)}}, Fields: []string{sdk.LabelProperty}}
	used := func(in, out uint64) sdk.Usage { return sdk.Usage{InputTokens: in, OutputTokens: out} }
	const silent = "its plugin does not say what a request takes"
	tests := []struct {
		name         string
		n, resamples int
		config       string
		prompts      []sdk.Prompt
		asked        sdk.Forecaster
		want         VoterAsked
	}{
		{"one prompt for all samples", 3, 0, `{"max_tokens": 5}`, []sdk.Prompt{{Text: text(41)}}, nil,
			VoterAsked{Items: 1, Forecast: sdk.Forecast{Requests: 1, Answers: 3, MostRequests: 3, Likely: used(11, 15), Low: 15, High: 15, Unknown: silent}}},
		{"one for each", 2, 0, `{"max_tokens": 5}`, []sdk.Prompt{{Text: text(4)}, {Text: text(8)}, {Text: text(400)}}, nil,
			VoterAsked{Items: 1, Forecast: sdk.Forecast{Requests: 2, Answers: 2, MostRequests: 2, Likely: used(3, 10), Low: 10, High: 10, Unknown: silent}}},
		{"a chat", 1, 0, `{"max_tokens": 0}`, []sdk.Prompt{chat}, nil,
			VoterAsked{Items: 1, Forecast: sdk.Forecast{Requests: 1, Answers: 1, MostRequests: 1, Likely: used(6, 0), Unknown: silent}}},
		{"none of the engine's", 1, 0, `{}`, nil, nil,
			VoterAsked{Items: 1, Forecast: sdk.Forecast{Requests: 1, Answers: 1, MostRequests: 1, Likely: used(1, 0), Unknown: silent}}},
		{"it says", 2, 1, `{}`, []sdk.Prompt{chat}, &asked{[]sdk.Forecast{
			{Requests: 1, Answers: 2, MostRequests: 2, Likely: used(7, 4), Most: used(30, 8)}, {}, {Cached: 1, Requests: 2, Answers: 1, MostRequests: 1, Likely: used(9, 4), Most: used(100, 8)},
		}}, VoterAsked{Items: 1, Forecast: sdk.Forecast{Requests: 1, Answers: 2, MostRequests: 3, Likely: used(7, 4), Most: used(130, 16)}}},
		{"it does not know", 1, 0, `{}`, []sdk.Prompt{chat}, &asked{[]sdk.Forecast{{Requests: 1, Answers: 1, MostRequests: 1, Likely: used(7, 0), Unknown: "it thinks"}}},
			VoterAsked{Items: 1, Forecast: sdk.Forecast{Requests: 1, Answers: 1, MostRequests: 1, Likely: used(7, 0), Unknown: "it thinks"}}},
		{"it abstains", 1, 2, `{}`, nil, &asked{make([]sdk.Forecast, 3)}, VoterAsked{Items: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newDryRun()
			stage := &pipeline.Stage{Name: "llm", N: test.n, Resamples: test.resamples, Config: pipeline.Config{Public: json.RawMessage(test.config)}}
			item := sdk.Item{Text: "text", Prompts: test.prompts}
			samples, err := r.sampler(stage, test.asked).Sample(t.Context(), sdk.Batch{Items: []sdk.Item{item}})
			if err != nil || len(samples) != 1 || len(samples[0]) != 0 {
				t.Fatalf("samples %v, error %v", samples, err)
			}
			got := r.voter("llm")
			if shown := got.Shown(); (shown == nil) != (test.prompts == nil) || shown != nil && !cmp.Equal(*shown, test.prompts[0]) {
				t.Errorf("shown: %+v", shown)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(VoterAsked{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := newDryRun().voter("other"); got.Items != 0 || got.Forecast != (sdk.Forecast{}) {
		t.Errorf("a voter that was not asked: %+v", got)
	}
	_, err := newDryRun().sampler(&pipeline.Stage{}, &asked{make([]sdk.Forecast, 1)}).Sample(t.Context(), sdk.Batch{Items: []sdk.Item{{Text: "fine"}, {Text: "broken"}}})
	var rows sdk.RowErrors
	if !errors.As(err, &rows) || len(rows) != 1 || rows[1] == nil {
		t.Errorf("error %v, want that of the second item", err)
	}
}

// The items that reach a voter are known only if no answer of another model decides about them.
func TestUnknown(t *testing.T) {
	network := sdk.Stage{Network: true}
	first := &pipeline.Stage{Block: "sample", Name: "first", Info: network, Enabled: true}
	local := &pipeline.Stage{Block: "sample", Name: "local", Enabled: true}
	second := func(change func(*pipeline.Stage)) *pipeline.Stage {
		s := &pipeline.Stage{Block: "sample", Name: "second", Info: network, Enabled: true}
		change(s)
		return s
	}
	ruled := func(s *pipeline.Stage) { s.When = new(rule.Rule) }
	for name, test := range map[string]struct {
		above  *pipeline.Stage
		change func(*pipeline.Stage)
		want   string
	}{
		"no rule":                   {first, func(*pipeline.Stage) {}, ""},
		"a rule on local votes":     {local, ruled, ""},
		"a rule on a model's votes": {first, ruled, "what it is asked may depend on the answers of sample.first"},
		"a fallback": {local, func(s *pipeline.Stage) { s.Fallbacks = []pipeline.Fallback{{Name: "other", Stage: first}} },
			`its fallback "other" calls a service, too`},
		"a local fallback": {local, func(s *pipeline.Stage) { s.Fallbacks = []pipeline.Fallback{{Name: "other", Stage: local}} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := second(test.change)
			elect := &pipeline.Stage{Block: "elect", Name: "e", Enabled: true}
			if got := voterUnknown(&pipeline.Pipeline{Stages: []*pipeline.Stage{test.above, s, elect}}, s); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestEnrichment(t *testing.T) {
	s := &pipeline.Stage{Config: pipeline.Config{Public: []byte(`{}`)}}
	a := knowledge.Asks{Stage: s, Passages: 3, Characters: 401}
	if f := EnrichForecast(a); f.Answers != 3 || f.Requests != 3 || f.Likely.InputTokens != 101+3*instructionTokens || f.Likely.OutputTokens != 3*additionTokens || f.Unknown == "" {
		t.Errorf("%+v", f)
	}
	s.Config.Public = []byte(`{"max_tokens": 20}`)
	if f := EnrichForecast(a); f.Likely.OutputTokens != 60 {
		t.Errorf("%+v", f)
	}
	a.Forecast = &sdk.Forecast{Answers: 2, Cached: 1}
	if f := EnrichForecast(a); f != *a.Forecast {
		t.Errorf("%+v is not what it says", f)
	}
}
