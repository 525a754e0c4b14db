package wire

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeCandidates converts lists of candidates into rows, with their texts, contexts and metadata if
// requested.
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
	var dense, lexical bool // whether the leg scored anything
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

// packPrototypes encodes only the label and the cosine to its centroid.
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

// unpackCandidates returns n lists; they are nil if the column is absent. A leg whose column is
// absent scored nothing.
func unpackCandidates(name string, in *stagepb.Candidates, n int) ([][]sdk.Candidate, error) {
	if in == nil {
		return make([][]sdk.Candidate, n), nil
	}
	total := len(in.Label)
	if err := cmp.Or(
		few(name, total, MaxRecords),
		spans(name, in.Offsets, n, total),
		optional(name+".id_bytes", len(in.IdBytes), total),
		optional(name+".text", len(in.Text), total),
		optional(name+".context", len(in.Context), total),
		optional(name+".meta", len(in.Meta), total),
		optional(name+".score", len(in.Score), total),
		optional(name+".dense", len(in.Dense), total),
		optional(name+".lexical", len(in.Lexical), total),
	); err != nil {
		return nil, err
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
	return ragged(all, in.Offsets), nil
}

func score(side []float32, i int) float32 {
	if len(side) == 0 {
		return sdk.Unscored
	}
	return side[i]
}

var errNotUTF8 = errors.New("the text is not valid UTF-8, so that its bytes cannot be numbered")

// EncodeDocuments makes rows of documents.
func EncodeDocuments(documents []sdk.Document) (*stagepb.Rows, error) {
	rows := &stagepb.Rows{N: uint32(len(documents)), Id: make([]string, len(documents)), Text: make([]string, len(documents))}
	for i, d := range documents {
		if !utf8.ValidString(d.Text) {
			return nil, fmt.Errorf("row %d: %w", i, errNotUTF8)
		}
		rows.Id[i], rows.Text[i] = Valid(d.ID), d.Text
	}
	var err error
	rows.Meta, err = metas(documents, func(d *sdk.Document) sdk.Meta { return d.Meta })
	return rows, err
}

// DecodeDocuments returns the documents in rows.
func DecodeDocuments(rows *stagepb.Rows) ([]sdk.Document, error) {
	n := len(rows.GetId())
	if err := cmp.Or(
		whole("id", n, int(rows.GetN())),
		whole("text", len(rows.GetText()), n),
		optional("meta", len(rows.GetMeta()), n),
	); err != nil {
		return nil, err
	}
	documents := make([]sdk.Document, n)
	for i := range documents {
		meta, err := decodeMeta(at(rows.GetMeta(), i))
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		documents[i] = sdk.Document{ID: rows.Id[i], Text: rows.Text[i], Meta: meta}
	}
	return documents, nil
}

// EncodeChunks makes rows of lists of chunks.
func EncodeChunks(lists [][]sdk.Chunk) (*stagepb.Rows, error) {
	out := &stagepb.Chunks{Offsets: make([]uint32, 1, len(lists)+1)}
	var all []sdk.Chunk
	for _, list := range lists {
		all = append(all, list...)
		out.Offsets = append(out.Offsets, uint32(len(all)))
	}
	out.Start, out.End = make([]uint32, len(all)), make([]uint32, len(all))
	for i, c := range all {
		out.Start[i], out.End[i] = position(c.Start), position(c.End)
		if c.Header == (sdk.Span{}) {
			continue
		}
		if out.HeaderStart == nil {
			out.HeaderStart, out.HeaderEnd = make([]uint32, len(all)), make([]uint32, len(all))
		}
		out.HeaderStart[i], out.HeaderEnd[i] = position(c.Header.Start), position(c.Header.End)
	}
	var err error
	out.Meta, err = metas(all, func(c *sdk.Chunk) sdk.Meta { return c.Meta })
	return &stagepb.Rows{N: uint32(len(lists)), Chunks: out}, err
}

// position encodes a byte position. A negative position becomes one that no text has, so that the
// receiver reports it.
func position(at int) uint32 { return uint32(min(uint64(at), math.MaxUint32)) }

// DecodeChunks returns the lists of chunks in rows. Row i has the chunks of documents[i].
func DecodeChunks(rows *stagepb.Rows, documents []sdk.Document) ([][]sdk.Chunk, error) {
	n, in := len(documents), rows.GetChunks()
	if n > 0 && in == nil {
		return nil, errors.New("column chunks is missing")
	}
	total := len(in.GetStart())
	if err := cmp.Or(
		whole("chunks", int(rows.GetN()), n),
		spans("chunks", in.GetOffsets(), n, total),
		whole("chunks.end", len(in.GetEnd()), total),
		optional("chunks.meta", len(in.GetMeta()), total),
		optional("chunks.header_start", len(in.GetHeaderStart()), total),
		whole("chunks.header_end", len(in.GetHeaderEnd()), len(in.GetHeaderStart())),
	); err != nil {
		return nil, err
	}
	all := make([]sdk.Chunk, total)
	lists := make([][]sdk.Chunk, n)
	for i := range lists {
		lo, hi := in.Offsets[i], in.Offsets[i+1]
		text, before := documents[i].Text, uint32(0)
		for j := lo; j < hi; j++ {
			start, end := in.Start[j], in.End[j]
			err := checkSpan(text, sdk.Span{Start: int(start), End: int(end)}, int(before), len(text))
			header := sdk.Span{Start: int(at(in.GetHeaderStart(), int(j))), End: int(at(in.GetHeaderEnd(), int(j)))}
			if err == nil && header != (sdk.Span{}) {
				err = checkSpan(text, header, 0, int(start))
			}
			if err != nil {
				return nil, fmt.Errorf("column chunks: chunk %d of row %d: %w", j-lo, i, err)
			}
			meta, err := decodeMeta(at(in.GetMeta(), int(j)))
			if err != nil {
				return nil, fmt.Errorf("column chunks: chunk %d of row %d: %w", j-lo, i, err)
			}
			all[j] = sdk.Chunk{Start: int(start), End: int(end), Header: header, Meta: meta}
			before = start
		}
		lists[i] = all[lo:hi:hi]
	}
	return lists, nil
}

// checkSpan checks a span of a text. It has to begin at byte least or later, and to end at byte most
// or earlier.
func checkSpan(text string, s sdk.Span, least, most int) error {
	switch {
	case s.Start < least || s.Start >= s.End || s.End > most:
		return fmt.Errorf("bytes %d to %d do not lie within those from %d to %d, which are left for it", s.Start, s.End, least, most)
	case !between(text, s.Start) || !between(text, s.End):
		return fmt.Errorf("bytes %d to %d cut a character in two", s.Start, s.End)
	}
	return nil
}

// between reports whether a position in a text lies between two characters.
func between(text string, at int) bool { return at == len(text) || utf8.RuneStart(text[at]) }
