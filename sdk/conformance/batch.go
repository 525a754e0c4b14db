package conformance

import (
	"context"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
)

// batchChecks are those of the kinds that work on items. A stage may fail
// single rows, but never a batch because of one.
var batchChecks = []Check{
	{
		Name: "one result per row", Within: Long,
		Why: "Results are matched with rows by their place; a row that cannot be worked on fails alone.",
		Fix: "Return as many results as there are rows, in their order, and row errors for those that fail.",
		Run: opened(func(ctx context.Context, s *remote.Stage, stage sdk.Stage) error {
			for _, b := range []sdk.Batch{{}, items(1), items(9)} {
				if _, err := results(ctx, s, stage.Kind, b); err != nil {
					return fmt.Errorf("batch of %d: %w", len(b.Items), err)
				}
			}
			return nil
		}),
	},
	{
		Name: "same row, same result", Within: Long,
		Why: "Batches differ from run to run and calls are made at the same time; a result is kept for the next run.",
		Fix: "Let a row's result depend on that row alone, and seed what is random with it.",
		Run: own(func(ctx context.Context, s *remote.Stage, stage sdk.Stage) error {
			b := items(9)
			const again = 64 // as many calls at a time as a stage has to bear
			return sameResults(b.Items, again, eachRow(len(b.Items)), func(items []sdk.Item) ([]string, error) {
				return results(ctx, s, stage.Kind, sdk.Batch{Labels: b.Labels, Items: items})
			}, equal)
		}),
	},
	{
		Name: "nothing to work with", Within: Long,
		Why: "A row may have no text, no candidate and no vote, and the other rows of its batch must not fail with it.",
		Fix: "Return an empty result, or a row error, for a row without what the stage reads.",
		Run: opened(func(ctx context.Context, s *remote.Stage, stage sdk.Stage) error {
			b := items(1)
			b.Items = []sdk.Item{{ID: "empty"}, b.Items[0], {ID: "empty, too"}}
			_, err := results(ctx, s, stage.Kind, b)
			return err
		}),
	},
	{
		Name: "texts of every script", Within: Long,
		Why: "People write in every script, with marks, emoji and zero bytes, and paste texts of any length.",
		Fix: "Take every text as it is; count characters, not bytes, where it is cut.",
		Run: opened(func(ctx context.Context, s *remote.Stage, stage sdk.Stage) error {
			_, err := results(ctx, s, stage.Kind, scripts())
			return err
		}),
	},
	{
		Name: "numbers are finite", Within: Long,
		Why: "A weight or score that is not finite, or out of its bounds, cannot be added up or stored; the row fails.",
		Fix: "Guard divisions and logarithms: candidates without a score (NaN), equal scores, weights of 0 and 1e100, and vectors of zeros do come.",
		Run: opened(func(ctx context.Context, s *remote.Stage, stage sdk.Stage) error {
			_, err := results(ctx, s, stage.Kind, extremes())
			return err
		}),
	},
	{
		Name: "reads what it declares", Within: Long,
		Why: "The engine sends only the columns that a stage declares, and keeps results by them.",
		Fix: "Declare each column that changes the result, and use no other.",
		Run: own(honestReads),
	},
	endsWhenCancelled(
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
