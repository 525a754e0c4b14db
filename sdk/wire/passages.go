package wire

import (
	"errors"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodePassages makes rows of the documents that passages stand in, each once,
// with its passages as their chunks. All passages of a document must stand
// together.
func EncodePassages(passages []sdk.Passage) (*stagepb.Rows, error) {
	var documents []sdk.Document
	var lists [][]sdk.Chunk
	sent := map[*sdk.Document]bool{}
	for i, p := range passages {
		switch {
		case p.Document == nil:
			return nil, fmt.Errorf("passage %d has no document", i)
		case i > 0 && p.Document == passages[i-1].Document:
		case sent[p.Document]:
			return nil, fmt.Errorf("passage %d is of document %q, whose other passages stand before those of another one", i, p.Document.ID)
		default:
			sent[p.Document] = true
			documents, lists = append(documents, *p.Document), append(lists, nil)
		}
		last := len(documents) - 1
		lists[last] = append(lists[last], p.Chunk)
	}
	for i := range documents {
		// A row of a source need not be UTF-8, and where all of it is the one passage
		// nobody numbers its bytes.
		if d, all := &documents[i], lists[i]; len(all) == 1 && all[0].Start == 0 && all[0].End == len(d.Text) {
			d.Text = Valid(d.Text)
			all[0].End = len(d.Text)
		}
	}
	rows, err := EncodeDocuments(documents)
	if err != nil {
		return nil, err
	}
	chunks, err := EncodeChunks(lists)
	if err != nil {
		return nil, err
	}
	rows.Chunks = chunks.Chunks
	return rows, nil
}

// DecodePassages returns the passages in rows of documents, those of a document
// with the same one.
func DecodePassages(rows *stagepb.Rows) ([]sdk.Passage, error) {
	documents, err := DecodeDocuments(rows)
	if err != nil {
		return nil, err
	}
	lists, err := DecodeChunks(rows, documents)
	if err != nil {
		return nil, err
	}
	passages := make([]sdk.Passage, 0, len(rows.GetChunks().GetStart()))
	for i, list := range lists {
		for _, c := range list {
			passages = append(passages, sdk.Passage{Document: &documents[i], Chunk: c})
		}
	}
	return passages, nil
}

// EncodeAdditions makes rows of additions, one per passage.
func EncodeAdditions(additions []sdk.Addition) *stagepb.Rows {
	rows := &stagepb.Rows{
		N:       uint32(len(additions)),
		Context: column(additions, func(a *sdk.Addition) string { return a.Context }),
	}
	out := &stagepb.Terms{Offsets: make([]uint32, 1, len(additions)+1)}
	for _, a := range additions {
		out.Term = append(out.Term, ValidAll(a.Terms)...)
		out.Offsets = append(out.Offsets, uint32(len(out.Term)))
	}
	if len(out.Term) > 0 {
		rows.Terms = out
	}
	return rows
}

// DecodeAdditions returns the additions to n passages in rows.
func DecodeAdditions(rows *stagepb.Rows, n int) ([]sdk.Addition, error) {
	switch {
	case rows == nil && n > 0:
		return nil, errors.New("there are no rows with additions")
	case uint64(rows.GetN()) != uint64(n):
		return nil, fmt.Errorf("%d additions to %d passages", rows.GetN(), n)
	}
	if err := optional("context", len(rows.GetContext()), n); err != nil {
		return nil, err
	}
	additions := make([]sdk.Addition, n)
	for i := range additions {
		additions[i].Context = at(rows.GetContext(), i)
	}
	in := rows.GetTerms()
	if in == nil {
		return additions, nil
	}
	if err := spans("terms", in.Offsets, n, len(in.Term)); err != nil {
		return nil, err
	}
	for i := range additions {
		if lo, hi := in.Offsets[i], in.Offsets[i+1]; lo < hi {
			additions[i].Terms = in.Term[lo:hi:hi]
		}
	}
	return additions, nil
}
