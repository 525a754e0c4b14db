package wire

import (
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeCandidates makes rows of lists of candidates, with their texts,
// contexts and metadata if asked.
func EncodeCandidates(lists [][]sdk.Candidate, texts bool) (*stagepb.Rows, error) {
	c, err := packCandidates(len(lists), func(i int) []sdk.Candidate { return lists[i] }, texts)
	return &stagepb.Rows{N: uint32(len(lists)), Candidates: c}, err
}

// DecodeCandidates returns the n lists of candidates in rows.
func DecodeCandidates(rows *stagepb.Rows, n int) ([][]sdk.Candidate, error) {
	if err := whole("candidates", int(rows.GetN()), n); err != nil {
		return nil, err
	}
	if n > 0 && rows.GetCandidates() == nil {
		return nil, fmt.Errorf("column candidates is missing")
	}
	return unpackCandidates("candidates", rows.GetCandidates(), n)
}

func packCandidates(n int, list func(int) []sdk.Candidate, texts bool) (*stagepb.Candidates, error) {
	total := 0
	for i := range n {
		total += len(list(i))
	}
	out := &stagepb.Candidates{
		Offsets: make([]uint32, 1, n+1),
		Label:   make([]uint32, 0, total),
		IdBytes: make([]uint32, 0, total),
		Score:   make([]float32, 0, total),
		Dense:   make([]float32, 0, total),
		Lexical: make([]float32, 0, total),
	}
	var labels dictionary
	var dense, lexical bool // whether that side scored anything
	ids := make([]byte, 0, 16*total)
	for i := range n {
		candidates := list(i)
		for j := range candidates {
			c := &candidates[j]
			out.Label = append(out.Label, labels.number(c.Label))
			out.Score = append(out.Score, c.Score)
			out.Dense = append(out.Dense, c.Dense)
			out.Lexical = append(out.Lexical, c.Lexical)
			dense, lexical = dense || c.Dense == c.Dense, lexical || c.Lexical == c.Lexical
			id := Valid(c.ID)
			ids = append(ids, id...)
			out.IdBytes = append(out.IdBytes, uint32(len(id)))
		}
		out.Offsets = append(out.Offsets, uint32(len(out.Label)))
	}
	out.Names, out.Ids = labels.names, string(ids)
	if !dense {
		out.Dense = nil
	}
	if !lexical {
		out.Lexical = nil
	}
	if !texts {
		return out, nil
	}
	all := make([]*sdk.Candidate, 0, total)
	for i := range n {
		candidates := list(i)
		for j := range candidates {
			all = append(all, &candidates[j])
		}
	}
	out.Text = column(all, func(c **sdk.Candidate) string { return (*c).Text })
	out.Context = column(all, func(c **sdk.Candidate) string { return (*c).Context })
	var err error
	out.Meta, err = metas(all, func(c **sdk.Candidate) sdk.Meta { return (*c).Meta })
	return out, err
}

// packPrototypes keeps the label and the cosine to its centroid only.
func packPrototypes(n int, list func(int) []sdk.Candidate) *stagepb.Candidates {
	out := &stagepb.Candidates{Offsets: make([]uint32, 1, n+1)}
	var labels dictionary
	for i := range n {
		for _, c := range list(i) {
			out.Label = append(out.Label, labels.number(c.Label))
			out.Dense = append(out.Dense, c.Dense)
		}
		out.Offsets = append(out.Offsets, uint32(len(out.Label)))
	}
	out.Names = labels.names
	return out
}

// unpackCandidates returns n lists, or nil where the column is absent. A
// dense or lexical side that is absent scored nothing.
func unpackCandidates(name string, in *stagepb.Candidates, n int) ([][]sdk.Candidate, error) {
	if in == nil {
		return make([][]sdk.Candidate, n), nil
	}
	total := len(in.Label)
	if err := few(name, total, MaxRecords); err != nil {
		return nil, err
	}
	if err := spans(name, in.Offsets, n, total); err != nil {
		return nil, err
	}
	for part, length := range map[string]int{
		"id_bytes": len(in.IdBytes), "text": len(in.Text), "context": len(in.Context), "meta": len(in.Meta),
		"score": len(in.Score), "dense": len(in.Dense), "lexical": len(in.Lexical),
	} {
		if err := optional(name+"."+part, length, total); err != nil {
			return nil, err
		}
	}
	all := make([]sdk.Candidate, total)
	ids := in.Ids
	for i := range all {
		c := &all[i]
		if int(in.Label[i]) >= len(in.Names) {
			return nil, fmt.Errorf("column %s: label %d of %d names", name, in.Label[i], len(in.Names))
		}
		c.Label = in.Names[in.Label[i]]
		if length := at(in.IdBytes, i); uint64(length) <= uint64(len(ids)) {
			c.ID, ids = ids[:length], ids[length:]
		} else {
			return nil, fmt.Errorf("column %s: an id of %d bytes where %d are left", name, length, len(ids))
		}
		c.Score, c.Dense, c.Lexical = at(in.Score, i), score(in.Dense, i), score(in.Lexical, i)
		c.Text, c.Context = at(in.Text, i), at(in.Context, i)
		if len(in.Meta) > 0 {
			var err error
			if c.Meta, err = decodeMeta(in.Meta[i]); err != nil {
				return nil, fmt.Errorf("column %s: %w", name, err)
			}
		}
	}
	lists := make([][]sdk.Candidate, n)
	for i := range lists {
		lo, hi := in.Offsets[i], in.Offsets[i+1]
		lists[i] = all[lo:hi:hi]
	}
	return lists, nil
}

func score(side []float32, i int) float32 {
	if len(side) == 0 {
		return sdk.Unscored
	}
	return side[i]
}
