package estimate

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Addition is how many tokens an enricher's answer is taken to have where its
// config has no max_tokens.
const Addition = 150

// Instructions is what a request for an addition is taken to hold beside the
// passage and its document, in tokens.
const Instructions = 300

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

// Enrichment is roughly what an enrich stage takes that is asked for so many
// passages, with so many characters of passages and their documents. Assumed says
// that its config does not say how long an addition is.
func Enrichment(s *pipeline.Stage, passages, characters int) (u sdk.Usage, assumed bool) {
	most := maxTokens(s)
	if assumed = most == 0; assumed {
		most = Addition
	}
	return sdk.Usage{InputTokens: uint64(sdk.EstimateTokens(characters) + passages*Instructions), OutputTokens: uint64(passages * most)}, assumed && passages > 0
}
