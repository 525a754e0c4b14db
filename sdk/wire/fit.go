package wire

import (
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeTraining makes rows of what a stage learns from, with the columns that it wants.
func EncodeTraining(rows []sdk.TrainingRow, reads sdk.Columns) (*stagepb.Rows, error) {
	items := make([]sdk.Item, len(rows))
	for i, r := range rows {
		items[i] = sdk.Item{ID: r.ID, Text: r.Text, Vector: r.Vector, Samples: r.Samples}
	}
	out, err := EncodeBatch(sdk.Batch{Items: items}, reads)
	if err != nil {
		return nil, err
	}
	out.Label = column(rows, func(r *sdk.TrainingRow) string { return r.Label })
	if slices.ContainsFunc(rows, func(r sdk.TrainingRow) bool { return r.HeldOut }) {
		out.HeldOut = make([]bool, len(rows))
		for i, r := range rows {
			out.HeldOut[i] = r.HeldOut
		}
	}
	return out, nil
}

// DecodeTraining returns what a stage learns from.
func DecodeTraining(rows *stagepb.Rows) ([]sdk.TrainingRow, error) {
	b, err := DecodeBatch(rows)
	if err != nil {
		return nil, err
	}
	if err := optional("label", len(rows.GetLabel()), len(b.Items)); err != nil {
		return nil, err
	}
	if err := optional("held_out", len(rows.GetHeldOut()), len(b.Items)); err != nil {
		return nil, err
	}
	out := make([]sdk.TrainingRow, len(b.Items))
	for i, it := range b.Items {
		out[i] = sdk.TrainingRow{ID: it.ID, Text: it.Text, Label: at(rows.GetLabel(), i), Vector: it.Vector, Samples: it.Samples, HeldOut: at(rows.GetHeldOut(), i)}
	}
	return out, nil
}
