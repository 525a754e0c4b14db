package sdktest

import (
	"context"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
)

// batchChecks are those of the kinds that work on items. A stage may fail
// single rows, but never a batch because of one row.
var batchChecks = map[string]check{
	"one result per row": opened(func(ctx context.Context, s *remote.Stage, stage sdk.Stage) error {
		for _, b := range []sdk.Batch{{}, items(1), items(9)} {
			if _, err := results(ctx, s, stage.Kind, b); err != nil {
				return fmt.Errorf("batch of %d: %w", len(b.Items), err)
			}
		}
		return nil
	}),
	"same row, same result": opened(func(ctx context.Context, s *remote.Stage, stage sdk.Stage) error {
		if stage.Network {
			return nil // another machine's answer is not the stage's own
		}
		b := items(9)
		const again = 64 // as many calls at a time as a stage has to bear
		return sameResults(b.Items, again, eachRow(len(b.Items)), func(items []sdk.Item) ([]string, error) {
			return results(ctx, s, stage.Kind, sdk.Batch{Labels: b.Labels, Items: items})
		}, equal)
	}),
	"what was learnt is carried over": carriedOver,
	"gives up when cancelled": endsWhenCancelled(
		func() sdk.Batch { return items(2000) }, func() sdk.Batch { return items(0) },
		func(ctx context.Context, s *remote.Stage, kind sdk.Kind, b sdk.Batch) error {
			_, err := results(ctx, s, kind, b)
			return err
		},
	),
}

// results calls the method of a kind.
func results(ctx context.Context, s *remote.Stage, kind sdk.Kind, b sdk.Batch) ([]string, error) {
	switch kind {
	case sdk.KindRerank:
		return flatten(s.Rerank(ctx, b))
	case sdk.KindPrompt:
		return flatten(s.Prompt(ctx, b))
	case sdk.KindSample:
		return flatten(s.Sample(ctx, b))
	case sdk.KindElect:
		return flatten(s.Elect(ctx, b))
	}
	return nil, fmt.Errorf("there are no checks for kind %q", kind)
}

// items makes n items with all columns, among them rows without candidates,
// rows without voters and texts that are not UTF-8.
func items(n int) sdk.Batch {
	labels := []string{"card_lost", "pin_change", "weather"}
	b := sdk.Batch{Labels: labels, Items: make([]sdk.Item, n)}
	for i := range b.Items {
		it := &b.Items[i]
		it.ID, it.Text, it.Vector = fmt.Sprint("item-", i), fmt.Sprint("my card is gone ", i), []float32{1, 0, 0}
		it.Meta = sdk.Meta{"channel": "chat"}
		it.Prompts = []sdk.Prompt{{Text: "which label?"}}
		switch i % 4 {
		case 1:
			continue // a row for which nothing was found
		case 2:
			it.Text = "caf\xe9"
		case 3:
			it.Text = ""
		}
		for j := range 12 {
			c := sdk.Candidate{
				ID: fmt.Sprint("entry-", j), Text: fmt.Sprint("example ", j), Label: labels[j%len(labels)],
				Score: 1 - float32(j)/20, Dense: .9 - float32(j)/20, Lexical: sdk.Unscored,
			}
			it.Candidates = append(it.Candidates, c)
			if j < len(labels) {
				it.Prototypes = append(it.Prototypes, sdk.Candidate{Label: c.Label, Dense: c.Dense})
				it.Random = append(it.Random, c)
			}
		}
		it.Samples = []sdk.Sample{
			{Voter: "neighbours", Answers: []sdk.Answer{{Label: labels[i%3], Weight: .6, Accepted: true}, {Label: labels[(i+1)%3], Weight: .4, Accepted: i%8 != 0}}},
			{Voter: "prototype", Answers: []sdk.Answer{{Label: labels[(i+1)%3], Weight: .5, Accepted: true}}},
			{Voter: "silent"},
		}
	}
	return b
}
