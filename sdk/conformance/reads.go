package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
)

// honestReads checks that the columns that a stage does not declare make no difference: taken away,
// as the engine does, filled, or filled with something else.
func honestReads(ctx context.Context, s *remote.Stage, stage sdk.Stage) error {
	b := items(9)
	want, err := results(ctx, s, stage.Kind, b)
	if err != nil {
		return err
	}
	every := *s
	every.Reads = ^sdk.Columns(0)
	for what, b := range map[string]sdk.Batch{"filled": b, "filled with something else": others(b, s.Reads)} {
		got, err := results(ctx, &every, stage.Kind, b)
		if err != nil {
			return fmt.Errorf("with columns that it does not declare %s: %w", what, err)
		}
		for i := range got {
			if d := equal(got[i], want[i]); d != "" {
				return fmt.Errorf("row %d, with columns that it does not declare %s: %s", i, what, d)
			}
		}
	}
	return nil
}

// others is a batch with other content in the columns that are not among reads.
func others(b sdk.Batch, reads sdk.Columns) sdk.Batch {
	out := sdk.Batch{Labels: b.Labels, Items: slices.Clone(b.Items)}
	if !reads.Has(sdk.ColumnLabels) {
		out.Labels = []string{"other"}
	}
	candidate := sdk.Candidate{ID: "other", Text: "other", Label: "other", Score: 9, Dense: .1, Lexical: 7}
	for i := range out.Items {
		it := &out.Items[i]
		for column, change := range map[sdk.Column]func(){
			sdk.ColumnText:       func() { it.Text = "something else" },
			sdk.ColumnMeta:       func() { it.Meta = sdk.Meta{"channel": "letter"} },
			sdk.ColumnVector:     func() { it.Vector = []float32{0, 1, 0} },
			sdk.ColumnPrototypes: func() { it.Prototypes = []sdk.Candidate{{Label: "other", Dense: .3}} },
			sdk.ColumnRandom:     func() { it.Random = []sdk.Candidate{candidate} },
			sdk.ColumnPrompts:    func() { it.Prompts = []sdk.Prompt{{Text: "another?"}} },
			sdk.ColumnSamples: func() {
				it.Samples = []sdk.Sample{{Voter: "other", Answers: []sdk.Answer{{Label: "other", Weight: 1, Accepted: true}}}}
			},
		} {
			if !reads.Has(column) {
				change()
			}
		}
		switch {
		case reads.Has(sdk.ColumnCandidateTexts):
		case !reads.Has(sdk.ColumnCandidates):
			it.Candidates = []sdk.Candidate{candidate}
		default:
			it.Candidates = slices.Clone(it.Candidates)
			for j := range it.Candidates {
				it.Candidates[j].Text, it.Candidates[j].Context = "another example", "elsewhere"
			}
		}
	}
	return out
}
