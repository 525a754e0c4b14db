package wire

import (
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeBatch makes rows of a batch with the columns that a stage reads.
func EncodeBatch(b sdk.Batch, reads sdk.Columns) (*stagepb.Rows, error) {
	items := b.Items
	n := len(items)
	rows := &stagepb.Rows{N: uint32(n), Id: make([]string, n)}
	for i := range items {
		rows.Id[i] = Valid(items[i].ID)
	}
	var err error
	if reads.Has(sdk.ColumnText) {
		// In full even where all are empty, so that a plugin may count on it.
		rows.Text = make([]string, n)
		for i := range items {
			rows.Text[i] = Valid(items[i].Text)
		}
	}
	if reads.Has(sdk.ColumnMeta) {
		if rows.Meta, err = metas(items, func(it *sdk.Item) sdk.Meta { return it.Meta }); err != nil {
			return nil, err
		}
	}
	if reads.Has(sdk.ColumnVector) {
		vector := func(i int) []float32 { return items[i].Vector }
		if err := packVectors(rows, widest(n, vector), vector); err != nil {
			return nil, err
		}
	}
	if texts := reads.Has(sdk.ColumnCandidateTexts); texts || reads.Has(sdk.ColumnCandidates) {
		rows.Candidates, err = packCandidates(n, func(i int) []sdk.Candidate { return items[i].Candidates }, texts)
		if err != nil {
			return nil, err
		}
	}
	if reads.Has(sdk.ColumnPrototypes) {
		rows.Prototypes = packPrototypes(n, func(i int) []sdk.Candidate { return items[i].Prototypes })
	}
	if reads.Has(sdk.ColumnRandom) {
		rows.Random, err = packCandidates(n, func(i int) []sdk.Candidate { return items[i].Random }, true)
		if err != nil {
			return nil, err
		}
	}
	if reads.Has(sdk.ColumnLabels) {
		rows.Labels = ValidAll(b.Labels)
	}
	if reads.Has(sdk.ColumnPrompts) {
		rows.Prompts = packPrompts(n, func(i int) []sdk.Prompt { return items[i].Prompts })
	}
	if reads.Has(sdk.ColumnSamples) {
		rows.Samples = packSamples(n, func(i int) []sdk.Sample { return items[i].Samples })
	}
	rows.Rejected = packRejected(items)
	for i := range items {
		if items[i].Drawn > 0 && rows.Drawn == nil {
			rows.Drawn = make([]uint32, n)
		}
		if rows.Drawn != nil {
			rows.Drawn[i] = uint32(max(items[i].Drawn, 0))
		}
	}
	return rows, nil
}

// DecodeBatch returns the batch in rows.
func DecodeBatch(rows *stagepb.Rows) (sdk.Batch, error) {
	n := len(rows.GetId())
	for _, err := range []error{
		whole("id", n, int(rows.GetN())),
		optional("text", len(rows.GetText()), n),
		optional("meta", len(rows.GetMeta()), n),
		optional("drawn", len(rows.GetDrawn()), n),
	} {
		if err != nil {
			return sdk.Batch{}, err
		}
	}
	vectors, err := unpackVectors(rows)
	if err != nil {
		return sdk.Batch{}, err
	}
	var lists [3][][]sdk.Candidate
	for i, c := range []struct {
		name string
		in   *stagepb.Candidates
	}{{"candidates", rows.GetCandidates()}, {"prototypes", rows.GetPrototypes()}, {"random", rows.GetRandom()}} {
		if lists[i], err = unpackCandidates(c.name, c.in, n); err != nil {
			return sdk.Batch{}, err
		}
	}
	prompts, err := unpackPrompts(rows.GetPrompts(), n)
	if err != nil {
		return sdk.Batch{}, err
	}
	samples, err := unpackSamples(rows.GetSamples(), n)
	if err != nil {
		return sdk.Batch{}, err
	}
	rejected, err := unpackRejected(rows.GetRejected(), n)
	if err != nil {
		return sdk.Batch{}, err
	}
	items := make([]sdk.Item, n)
	for i := range items {
		meta, err := decodeMeta(at(rows.GetMeta(), i))
		if err != nil {
			return sdk.Batch{}, fmt.Errorf("row %d: %w", i, err)
		}
		items[i] = sdk.Item{
			ID: rows.Id[i], Text: at(rows.GetText(), i), Meta: meta, Vector: at(vectors, i),
			Candidates: lists[0][i], Prototypes: lists[1][i], Random: lists[2][i],
			Prompts: prompts[i], Samples: samples[i], Drawn: int(at(rows.GetDrawn(), i)), Rejected: rejected[i],
		}
	}
	return sdk.Batch{Items: items, Labels: rows.GetLabels()}, nil
}
