package tune

import (
	"context"
	"math"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/tune/ascent"
	"github.com/racflow/racflow/sdk"
)

// elections is how many items all searches for weights together hold an election over.
const elections = 6_000_000

// page is how many rows an election that learns gets at a time.
const page = 256

// fit finds on some items how much the voters count.
func (w *work) fit(ctx context.Context, items []int) (Found, error) {
	switch {
	case w.Learns:
		w.progress("fitting the election", 0, 0)
		return w.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
			for from := 0; from < len(items); from += page {
				var rows []sdk.TrainingRow
				for _, i := range items[from:min(from+page, len(items))] {
					r := w.Results[i]
					rows = append(rows, sdk.TrainingRow{ID: r.ID, Text: r.Text, Label: r.Expected, Samples: w.kinds[0].Samples(i), HeldOut: w.Calls > 0})
				}
				if !yield(rows, ctx.Err()) {
					return
				}
			}
		})
	case w.Argument == "accuracy":
		return Found{w.Argument: w.accuracies(items)}, nil
	}
	return w.climb(ctx, items)
}

// accuracies is how often each voter's own answer is right, of the items that
// it gave an acceptable one to: (right + 1) / (answered + 2), Laplace's rule of
// succession, so that few items make nobody infallible.
func (w *work) accuracies(items []int) map[string]float64 {
	c := eval.NewCounter(w.Labels...)
	for _, i := range items {
		c.Add(w.Results[i])
	}
	all := map[string]float64{}
	for _, v := range c.Report(outcome.Totals{}).Voters {
		n := float64(v.Asked)
		if v.Accepted > 0 {
			all[v.Name] = math.Round(1e4*(v.Accuracy*n+1)/(v.Accepted*n+2)) / 1e4
		}
	}
	return all
}

// climb searches for the weights with which the most items are right, in all kinds of
// elections together.
func (w *work) climb(ctx context.Context, items []int) (Found, error) {
	named := func(weights []float64) Found {
		all := map[string]float64{}
		for n, v := range w.Voters {
			all[v] = weights[n]
		}
		return Found{w.Argument: all}
	}
	if w.search == nil {
		w.search = &ascent.Search{
			Weights: len(w.Voters), Items: len(w.all), Most: len(w.kinds), Budget: elections / len(w.kinds),
			Score: func(ctx context.Context, weights []float64, items []int) ([]int8, error) {
				election, err := w.Election(ctx, named(weights))
				if err != nil {
					return nil, err
				}
				found, err := w.score(ctx, election, items)
				all := make([]int8, len(found))
				for n, right := range found {
					all[n] = int8(count(right))
				}
				return all, err
			},
			Progress: func(done, _ int) { w.progress("searching for weights, elections held", done, 0) },
		}
	}
	weights, err := w.search.Best(ctx, items)
	return named(weights), err
}
