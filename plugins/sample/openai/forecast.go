package openai

import (
	"context"

	"github.com/racflow/racflow/sdk"
)

// Forecast implements sdk.Forecaster.
func (v *voter) Forecast(item sdk.Item) (sdk.Forecast, error) {
	var f sdk.Forecast
	if item.Drawn > 0 && item.Rejected == nil {
		item.Rejected = longest()
	}
	questions, all, err := v.slots(item)
	if err != nil {
		return f, err
	}
	for i := range questions {
		q, answers := &questions[i], 0
		for at := i; at < len(all); at += len(questions) {
			alone, _, err := v.call(q, all[at].number, 1)
			if err != nil {
				return f, err
			}
			f.Most.Add(alone.Most)
			answers++
			switch {
			case q.request.MaxTokens == 0:
				f.Unknown = "its answers have no limit; max_tokens in its config sets one"
			case !v.Plain():
				f.Unknown = "body in its config may let a request take more"
			case alone.Most == sdk.Usage{} || !alone.Most.Plausible():
				f.Unknown = "its max_tokens is beyond what any answer has"
			}
		}
		size := min(answers, int(v.Choices.Load()))
		requests := (answers + size - 1) / size
		together, out, err := v.call(q, all[i].number, size)
		if err != nil {
			return f, err
		}
		f.Requests += requests
		f.Likely.Add(sdk.Usage{
			InputTokens:  uint64(requests * (together.Tokens - out)),
			OutputTokens: uint64(answers * q.request.MaxTokens),
		})
	}
	return f, nil
}

// call is what a request for n answers takes, and how many of its tokens are for them.
func (v *voter) call(q *question, number, n int) (sdk.Call, int, error) {
	return v.Call(context.Background(), v.numbered(v.Backend, q, number, n))
}

var _ sdk.Forecaster = (*voter)(nil)
