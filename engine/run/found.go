package run

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// Found returns what the last retrieve or rerank stage leaves for an item, best
// first, with texts. No other stage is asked than those that this one needs.
func (r *Run) Found(ctx context.Context, row source.Row) ([]sdk.Candidate, error) {
	if r.found < 0 {
		return nil, errors.New("the pipeline has no retrieve block that is used")
	}
	if row.Err != nil {
		return nil, row.Err
	}
	rec := r.newRecord(row)
	rec.texts = true
	needs := r.stages[r.found].in.needs
	r.through(ctx, []*record{rec}, func(i int) bool { return i == r.found || slices.Contains(needs, i) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	stages := append(slices.Clip(needs), r.found)
	if f := cmp.Or(rec.failure(stages), rec.missing(stages)); f != nil {
		return nil, f
	}
	return rec.outputs[r.found].candidates, nil
}
