package openai

import (
	"context"
	"strings"

	"github.com/racflow/racflow/plugins/internal/backends"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
)

// Forecast implements sdk.Forecaster.
func (v *voter) Forecast(item sdk.Item) (f sdk.Forecast, err error) {
	if item.Drawn > 0 && item.Rejected == nil {
		item.Rejected = longest()
	}
	questions, all, err := v.slots(item)
	if err != nil {
		return f, err
	}
	keys := make([]sdk.Key, len(all))
	for i := range all {
		keys[i] = all[i].key
	}
	found, err := v.CacheGet(context.Background(), keys)
	if err != nil {
		return f, err
	}
	type group struct{ question, backend int }
	missing := map[group]int{}
	for i := range all {
		if v.fill(&all[i], found[i]) {
			f.Cached++
		} else {
			missing[group{i % len(questions), all[i].backend.Index}]++
		}
	}
	for of, answers := range missing {
		one, err := v.answers(&questions[of.question], v.set.All[of.backend], answers, all[len(all)-1].number)
		if err != nil {
			return f, err
		}
		f.Add(one)
	}
	return f, nil
}

// answers is what answers to a question take that are to come from a backend. Another one
// may take its place, and take more.
func (v *voter) answers(q *question, from *backends.Backend, n, number int) (f sdk.Forecast, err error) {
	for _, b := range v.set.All {
		one, err := b.Forecast(v.numbered(b, q, number, 1), n, int(b.Choices.Load()), q.written)
		if err != nil {
			return f, err
		}
		most := sdk.Usage{InputTokens: max(f.Most.InputTokens, one.Most.InputTokens), OutputTokens: max(f.Most.OutputTokens, one.Most.OutputTokens)}
		unknown := f.Unknown
		if b == from {
			f = one
		}
		if f.Most = most; one.Unknown != "" {
			unknown = one.Unknown
		}
		f.Unknown = unknown
	}
	return f, nil
}

// What an answer is expected to have, in tokens.
const (
	ending      = 1   // what ends it
	property    = 4   // the name of a property of an object, with its quotes
	explanation = 40  // a property that is not the label: a sentence or two
	paragraph   = 150 // a text that cites passages
	unlabelled  = 8   // a label where none is known
)

// written is how many tokens an answer is expected to have.
func (q *question) written(known profile.Profile) int {
	p := q.prompt
	label := unlabelled
	if len(p.Labels) > 0 {
		label = (known.Tokens(strings.Join(p.Labels, " ")) + len(p.Labels) - 1) / len(p.Labels)
	}
	switch {
	case p.Passages != nil:
		return paragraph
	case p.Fields == nil:
		return label + ending
	case len(p.Fields) > 1 && known.Object() > 0:
		return known.Object()
	}
	sum := ending
	for _, field := range p.Fields {
		sum += property
		if field == sdk.LabelProperty || field == sdk.LabelsProperty {
			sum += label
		} else {
			sum += explanation
		}
	}
	return sum
}

var _ sdk.Forecaster = (*voter)(nil)
