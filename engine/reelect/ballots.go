package reelect

import (
	"context"
	"errors"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/stage"
	"github.com/racflow/racflow/sdk"
)

// Ballots are what voters returned about items. The rules of the election have been
// evaluated, so that elections with many weights can be held over them, each for
// little more than counting.
type Ballots struct {
	results []outcome.Result
	items   stage.Items
	places  []int // in items, by position among the results; -1: a row that could not be read
}

// Prepare returns the ballots of items, of those voters that asked agrees to.
func (e *Election) Prepare(ctx context.Context, results []outcome.Result, asked func(Ask) bool) (*Ballots, error) {
	b := &Ballots{results: results, places: make([]int, len(results))}
	var records []*stage.Record
	for i := range results {
		old, err := e.record(results[i])
		if err != nil {
			return nil, err
		}
		if b.places[i] = -1; old.Row.Err != nil {
			continue
		}
		rec, _, err := e.again.Record(old, func(v stage.Voter) bool { return asked(Ask{i, v}) })
		if err != nil {
			return nil, err
		}
		b.places[i] = len(records)
		records = append(records, rec)
	}
	b.items = e.again.Prepare(ctx, records)
	return b, ctx.Err()
}

// Samples are what the election gets to see of an item.
func (b *Ballots) Samples(i int) []sdk.Sample {
	if b.places[i] < 0 {
		return nil
	}
	return b.items.Batch.Items[b.places[i]].Samples
}

// Hold holds the election over some of the items, by position. Results are without
// votes, and no fallback of the election is asked.
func (e *Election) Hold(ctx context.Context, b *Ballots, at []int) ([]outcome.Result, error) {
	out := make([]outcome.Result, len(at))
	err := batches(ctx, len(at), func(ctx context.Context, from, to int) error {
		batch := sdk.Batch{Labels: b.items.Batch.Labels}
		var places []int
		for n := from; n < to; n++ {
			place := b.places[at[n]]
			if decided, ok := b.items.Decided[place]; ok {
				out[n] = decided
			} else if place < 0 {
				out[n] = b.results[at[n]]
			} else {
				batch.Items, places = append(batch.Items, b.items.Batch.Items[place]), append(places, n)
			}
		}
		verdicts, err := e.again.Verdicts(ctx, batch)
		rows := sdk.RowErrors{}
		if err != nil && (!errors.As(err, &rows) || len(verdicts) != len(places)) {
			return err
		}
		for i, n := range places {
			of := b.results[at[n]]
			out[n] = outcome.Result{Line: of.Line, ID: of.ID, Text: of.Text, Expected: of.Expected}
			if rows[i] != nil {
				out[n].Failure = &outcome.Failure{Err: rows[i]}
				continue
			}
			v := verdicts[i]
			out[n].Answer, out[n].Agreement, out[n].Confidence, out[n].Reason = v.Answer, v.Agreement, v.Confidence, v.Reason
		}
		return ctx.Err()
	})
	return out, err
}
