package chatmodel

import (
	"context"
	"encoding/json"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
)

// Forecast is what it costs to get a number of answers to a request, by what is known of the
// model. It asks nobody. Choices is how many a request asks for at most, and written
// how many tokens an answer is expected to have.
func (m *Model) Forecast(r dialect.Request, answers, choices int, written func(profile.Profile) int) (f sdk.Forecast, err error) {
	if answers == 0 {
		return f, nil
	}
	p, _, err := m.keeper.Kept(context.Background())
	if err != nil {
		return f, err
	}
	r.N = min(answers, choices)
	sent := p.Apply(r)
	size := max(1, sent.N)
	sent.N = 1
	body, err := m.dialect.Body(sent)
	if err != nil {
		return f, sdk.Invalid(err)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return f, sdk.Invalid(err)
	}
	each := written(p) + p.Foreseen()
	if sent.MaxTokens > 0 {
		each = min(each, sent.MaxTokens)
	}
	f.Answers, f.MostRequests, f.Requests = answers, answers, (answers+size-1)/size
	f.Likely = sdk.Usage{InputTokens: uint64(f.Requests) * p.Estimate(sent), OutputTokens: uint64(answers * each)}
	alone := sdk.Usage{InputTokens: p.MostInput(sent, len(text)), OutputTokens: uint64(sent.MaxTokens)}
	switch {
	case p.Unbounded(sent) != "":
		f.Unknown = p.Unbounded(sent)
	case !m.Plain():
		f.Unknown = "body in its config may let a request take more"
	case !alone.Plausible():
		f.Unknown = "its max_tokens is beyond what any answer has"
	default:
		f.Most = sdk.Usage{InputTokens: uint64(answers) * alone.InputTokens, OutputTokens: uint64(answers) * alone.OutputTokens}
	}
	return f, nil
}
