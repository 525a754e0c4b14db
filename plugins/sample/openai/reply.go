package openai

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

// reply is one choice, as it is cached.
type reply struct {
	dialect.Choice
	Probability float64 `json:"probability,omitempty"` // of the label's tokens; 0: the server did not say
	// What the request cost, on its first choice.
	Input  uint64 `json:"input,omitempty"`
	Cached uint64 `json:"cached,omitempty"`
	Output uint64 `json:"output,omitempty"`
	// Model is the one that gave it, where that is not the one that was to.
	Model string `json:"model,omitempty"`
}

// fill takes a cached value and reports whether it is a reply.
func (v *voter) fill(s *slot, value []byte) bool {
	var r reply
	if value == nil || json.Unmarshal(value, &r) != nil || r.Model != "" && !v.set.Has(r.Model) {
		return false
	}
	s.reply, s.given = r, true
	return true
}

// read makes a sample of a reply.
func (v *voter) read(s *slot) sdk.Sample {
	r := s.reply
	all := answer.ReadAll(r.Text, s.question.prompt, v.reading)
	if r.Probability > 0 {
		all[0].Weight = r.Probability
	}
	if reason := r.unusable(all[0], s.question.prompt); reason != "" {
		all = []sdk.Answer{{Weight: all[0].Weight, Reason: reason}}
	}
	sample := sdk.Sample{
		Answers: all,
		Usage:   sdk.Usage{InputTokens: r.Input, CachedTokens: r.Cached, OutputTokens: r.Output},
		Text:    clip(r.Visible(), maxRejected),
		Key:     s.key,
	}
	if len(v.set.All) > 1 {
		sample.Model = cmp.Or(r.Model, s.backend.Name())
	}
	return sample
}

// unusable is why a reply is no answer; "": it is one.
func (r reply) unusable(a sdk.Answer, p sdk.Prompt) string {
	if reason := r.Unusable(); reason != "" {
		return reason
	}
	if r.Cut() && (a.Reason != "" || p.Passages != nil || r.cutLabel(a, p)) {
		return dialect.TooLong
	}
	return a.Reason
}

// cutLabel reports whether the label itself may be truncated: a line without an end
// that is no known label, or what was read as one at the end of the text.
func (r reply) cutLabel(a sdk.Answer, p sdk.Prompt) bool {
	if a.Reading != "" {
		_, to := answer.Span(r.Text, p, answer.Options{})
		rest := r.Text[to:]
		return !strings.Contains(rest, "\n") && strings.TrimSpace(rest) == ""
	}
	if p.Fields != nil || len(p.Labels) == 0 || a.Label == "" || strings.Contains(strings.TrimSpace(r.Text), "\n") {
		return false
	}
	return !slices.Contains(p.Labels, a.Label)
}

// least is the smallest probability: an answer of weight 0 would not count.
const least = 1e-6

// probability multiplies those of the tokens of the label, as it is read. NaN: there is
// none.
func probability(tokens []dialect.Token, p sdk.Prompt, o answer.Options) float64 {
	var whole strings.Builder
	for _, t := range tokens {
		whole.WriteString(t.Text)
	}
	from, to := answer.Span(whole.String(), p, o)
	if from >= to {
		return math.NaN()
	}
	at, sum := 0, 0.0
	for _, t := range tokens {
		if at < to && at+len(t.Text) > from {
			sum += t.Log
		}
		at += len(t.Text)
	}
	if !(sum <= 0) { // a server's mistake
		return math.NaN()
	}
	return max(math.Exp(sum), least)
}
