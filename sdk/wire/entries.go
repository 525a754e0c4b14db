package wire

import (
	"bytes"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeCollection makes the message of what a store tells of a collection.
func EncodeCollection(c sdk.Collection) *stagepb.Collection {
	return &stagepb.Collection{Name: Valid(c.Name), Entries: uint64(c.Entries), Dimension: uint32(c.Dimension), Note: c.Note}
}

// DecodeCollection is the inverse of EncodeCollection.
func DecodeCollection(c *stagepb.Collection) sdk.Collection {
	return sdk.Collection{Name: c.GetName(), Entries: int(min(c.GetEntries(), 1<<48)), Dimension: int(c.GetDimension()), Note: c.GetNote()}
}

// EncodeEntries makes rows of entries.
func EncodeEntries(entries []sdk.Entry) (*stagepb.Rows, error) {
	n := len(entries)
	rows := &stagepb.Rows{
		N: uint32(n), Id: make([]string, n),
		Text:    column(entries, func(e *sdk.Entry) string { return e.Text }),
		Label:   column(entries, func(e *sdk.Entry) string { return e.Label }),
		Context: column(entries, func(e *sdk.Entry) string { return e.Context }),
	}
	for i := range entries {
		rows.Id[i] = Valid(entries[i].ID)
		if len(entries[i].Hash) > 0 {
			if rows.Hash == nil {
				rows.Hash = make([][]byte, n)
			}
			rows.Hash[i] = bytes.Clone(entries[i].Hash)
		}
	}
	var err error
	if rows.Meta, err = metas(entries, func(e *sdk.Entry) sdk.Meta { return e.Meta }); err != nil {
		return nil, err
	}
	vector := func(i int) []float32 { return entries[i].Vector }
	return rows, packVectors(rows, widest(n, vector), vector)
}

// DecodeEntries returns the n entries in rows.
func DecodeEntries(rows *stagepb.Rows, n int) ([]sdk.Entry, error) {
	for _, err := range []error{
		few("entries", n, MaxRecords),
		whole("entries", int(rows.GetN()), n),
		whole("id", len(rows.GetId()), n),
		optional("text", len(rows.GetText()), n),
		optional("label", len(rows.GetLabel()), n),
		optional("context", len(rows.GetContext()), n),
		optional("meta", len(rows.GetMeta()), n),
		optional("hash", len(rows.GetHash()), n),
	} {
		if err != nil {
			return nil, err
		}
	}
	vectors, err := unpackVectors(rows)
	if err != nil {
		return nil, err
	}
	entries := make([]sdk.Entry, n)
	for i := range entries {
		meta, err := decodeMeta(at(rows.GetMeta(), i))
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		entries[i] = sdk.Entry{
			ID: rows.Id[i], Text: at(rows.GetText(), i), Label: at(rows.GetLabel(), i), Context: at(rows.GetContext(), i),
			Meta: meta, Vector: at(vectors, i), Hash: at(rows.GetHash(), i),
		}
	}
	return entries, nil
}
