package estimate

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/knowledge/enrich"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Addition is how many tokens an enricher's answer is taken to have where its
// config has no max_tokens.
const Addition = 150

// Instructions is what a request for an addition is taken to hold beside the
// passage and its document, in tokens.
const Instructions = 300

// unsaid is why nobody knows a bound.
const unsaid = "its plugin does not say what a request takes"

// Tokens is roughly how many tokens a prompt has.
func Tokens(p sdk.Prompt) int {
	n := utf8.RuneCountInString(p.Text)
	for _, m := range p.Messages {
		n += utf8.RuneCountInString(m.Text)
	}
	return sdk.EstimateTokens(n)
}

// maxTokens is what the config of a stage says about its answers; 0: nothing.
func maxTokens(s *pipeline.Stage) int {
	var config struct {
		MaxTokens int `json:"max_tokens"`
	}
	if json.Unmarshal(s.Config.Public, &config) != nil {
		return 0 // it is of another type there
	}
	return max(config.MaxTokens, 0)
}

// Enrichment is what an enrich stage would take, as far as anybody knows: what it says
// itself, or roughly what its passages come to, with Addition tokens for each where its config
// does not say how long one is.
func Enrichment(a enrich.Asks) sdk.Forecast {
	if a.Forecast != nil {
		return *a.Forecast
	}
	most := maxTokens(a.Stage)
	if most == 0 {
		most = Addition
	}
	f := sdk.Forecast{
		Answers: a.Passages, Requests: a.Passages, MostRequests: a.Passages,
		Likely: sdk.Usage{InputTokens: uint64(sdk.EstimateTokens(a.Characters) + a.Passages*Instructions), OutputTokens: uint64(a.Passages * most)},
	}
	if a.Passages > 0 {
		f.Unknown = unsaid
	}
	return f
}
