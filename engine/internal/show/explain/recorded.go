package explain

import (
	"cmp"
	"context"
	"slices"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// Recorded returns an item as the election's flag rule sees it, from what the run kept. gone says
// what is no longer there, and why. The margin is computed from the kept votes, which are the
// heaviest of each voter.
func (r *Run) Recorded(ctx context.Context, id string) (seen *pipeline.Inspected, gone []string, err error) {
	k, err := r.find(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if err := r.complete(ctx, []*kept{k}); err != nil {
		return nil, nil, err
	}
	env := &rule.Env{
		Item:   sdk.Item{ID: k.ID, Text: k.Text, Meta: k.row.Meta},
		Answer: string(k.Answer), Agreement: k.Agreement, Confidence: cmp.Or(k.Confidence, k.Agreement), Unknown: k.Unknown,
		Margin: margin(r.Manifest().LabelForm, k.Votes),
	}
	seen = &pipeline.Inspected{Env: env, Unknown: map[string]string{}}
	for _, v := range k.Votes {
		env.Votes = append(env.Votes, rule.Vote{Voter: v.Voter, Answer: v.Answer, Weight: v.Weight, Accepted: v.Accepted})
	}
	if n := len(k.Lists); n > 0 {
		env.Item.Candidates = k.Lists[n-1].found
	}
	for _, c := range env.Item.Candidates {
		env.CandidateLabels = append(env.CandidateLabels, r.Manifest().LabelForm.Split(c.Label)...)
	}
	env.Labels = rule.NewLabelSet(r.Labels())
	env.CandidateLabels = rule.NewLabelSet(env.CandidateLabels).Sorted()
	if len(k.Lists) == 0 && r.lastList() != "" {
		seen.Lacks("the run kept no candidates of this item; racflow run --keep all keeps those of every item", "candidates", "candidate_labels")
	}
	switch {
	case k.Status == journal.Unreached:
		seen.Lacks("the run did not reach the item", "answer", "agreement", "confidence", "unknown", "margin", "votes")
	case k.Error != nil:
		seen.Lacks("the item failed: "+k.Error.Error(), "answer", "agreement", "confidence", "unknown")
	}
	return seen, k.Gone, nil
}

// rest stands for the labels of a distribution that the run did not keep.
const rest = "\x00"

// margin returns the margin of the mean ballot of votes. A run keeps only the heaviest labels of a
// distribution: the missing weight up to 1 belongs to other labels. Of sets, the labels that it does
// not keep have small shares, which do not make the margin smaller.
func margin(form sdk.LabelForm, votes []result.Vote) float64 {
	samples := result.Samples(votes)
	if form.Many {
		return ballot.MarginSet(ballot.MeanSet(samples, nil))
	}
	for i := range samples {
		s, sum, most := &samples[i], 0.0, 0.0
		for _, a := range s.Answers {
			sum, most = sum+a.Weight, max(most, a.Weight)
		}
		if len(s.Answers) > 1 && most < 1 && sum < 1 {
			s.Answers = append(s.Answers, sdk.Answer{Label: rest, Weight: 1 - sum, Accepted: true})
		}
	}
	return ballot.Margin(slices.DeleteFunc(ballot.Mean(samples, nil), func(a sdk.Answer) bool { return a.Label == rest }))
}
