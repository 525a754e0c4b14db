package wire

import (
	"errors"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeAttached makes the message of what an Attacher found.
func EncodeAttached(a sdk.Attached) *stagepb.Attached {
	m := &stagepb.Attached{
		Name: Valid(a.Name), Id: Valid(a.ID), Entries: uint64(max(a.Entries, 0)), Dimension: uint32(max(a.Dimension, 0)),
		Lexical: a.Lexical, Labels: a.Labels, Notes: ValidAll(a.Notes),
	}
	for _, f := range a.Fields {
		m.Fields = append(m.Fields, &stagepb.AttachedField{Part: Valid(f.Part), Field: Valid(f.Field), Why: Valid(f.Why)})
	}
	return m
}

// DecodeAttached is the inverse of EncodeAttached. It refuses what no later call could use.
func DecodeAttached(m *stagepb.Attached) (sdk.Attached, error) {
	a := sdk.Attached{
		Name: m.GetName(), ID: m.GetId(), Entries: int(min(m.GetEntries(), 1<<48)), Dimension: int(m.GetDimension()),
		Lexical: m.GetLexical(), Labels: m.GetLabels(), Notes: m.GetNotes(),
	}
	for _, f := range m.GetFields() {
		a.Fields = append(a.Fields, sdk.AttachedField{Part: f.GetPart(), Field: f.GetField(), Why: f.GetWhy()})
	}
	switch {
	case a.Name == "":
		return a, errors.New("the attached collection has no name")
	case a.ID == "":
		return a, errors.New("the attached collection has no id")
	case a.Dimension <= 0:
		return a, errors.New("the attached collection has vectors of dimension 0")
	}
	return a, nil
}
