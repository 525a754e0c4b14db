package wire

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeAttached converts the result of an Attacher into a message.
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

// DecodeAttached is the inverse of EncodeAttached. It refuses values that no later call could use.
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

// EncodeCollection converts the state of a collection into a message.
func EncodeCollection(c sdk.Collection) *stagepb.Collection {
	return &stagepb.Collection{Name: Valid(c.Name), Entries: uint64(c.Entries), Dimension: uint32(c.Dimension), Note: c.Note}
}

// DecodeCollection is the inverse of EncodeCollection.
func DecodeCollection(c *stagepb.Collection) sdk.Collection {
	return sdk.Collection{Name: c.GetName(), Entries: int(min(c.GetEntries(), 1<<48)), Dimension: int(c.GetDimension()), Note: c.GetNote()}
}

// EncodeEntries converts entries into rows.
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
	if err := cmp.Or(
		few("entries", n, MaxRecords),
		whole("entries", int(rows.GetN()), n),
		whole("id", len(rows.GetId()), n),
		optional("text", len(rows.GetText()), n),
		optional("label", len(rows.GetLabel()), n),
		optional("context", len(rows.GetContext()), n),
		optional("meta", len(rows.GetMeta()), n),
		optional("hash", len(rows.GetHash()), n),
	); err != nil {
		return nil, err
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

// packFilters returns the filters of queries, each once, and the number of each query's filter: 0 for
// none. Both are nil if no query has a filter.
func packFilters(queries []sdk.Query) ([]*stagepb.Filter, []uint32, error) {
	var filters []*stagepb.Filter
	var numbers []uint32
	known := map[*sdk.Filter]uint32{} // the queries of a search mostly share one filter
	equal := map[string]uint32{}
	for i := range queries {
		f := queries[i].Filter
		if f == nil {
			continue
		}
		number := known[f]
		if number == 0 {
			if err := f.Check(); err != nil {
				return nil, nil, fmt.Errorf("query %d: %w", i, err)
			}
			text := f.String()
			if number = equal[text]; number == 0 {
				filters = append(filters, encodeFilter(f))
				number = uint32(len(filters))
				equal[text] = number
			}
			known[f] = number
		}
		if numbers == nil {
			numbers = make([]uint32, len(queries))
		}
		numbers[i] = number
	}
	return filters, numbers, nil
}

// unpackFilters gives n queries their filters; queries with the same number share one filter.
func unpackFilters(in []*stagepb.Filter, numbers []uint32, queries []sdk.Query) error {
	if err := optional("query_filter", len(numbers), len(queries)); err != nil {
		return err
	}
	filters := make([]sdk.Filter, len(in))
	for i := range in {
		err := decodeFilter(in[i], &filters[i], sdk.MaxFilterDepth)
		if err == nil {
			err = filters[i].Check()
		}
		if err != nil {
			return fmt.Errorf("filter %d: %w", i, err)
		}
	}
	for i, number := range numbers {
		if uint64(number) > uint64(len(filters)) {
			return fmt.Errorf("query %d has filter %d of %d", i, number, len(filters))
		}
		if number > 0 {
			queries[i].Filter = &filters[number-1]
		}
	}
	return nil
}

// encodeFilter encodes a checked filter. Its operators and fields have the same numbers in the
// message.
func encodeFilter(f *sdk.Filter) *stagepb.Filter {
	out := &stagepb.Filter{Op: stagepb.FilterOp(f.Op), Field: stagepb.Field(f.Field), Key: Valid(f.Key)}
	for i := range f.Parts {
		out.Parts = append(out.Parts, encodeFilter(&f.Parts[i]))
	}
	for _, v := range f.Values {
		value := &stagepb.Value{}
		switch v := v.(type) {
		case string:
			value.Value = &stagepb.Value_Text{Text: Valid(v)}
		case float64:
			value.Value = &stagepb.Value_Number{Number: v}
		case bool:
			value.Value = &stagepb.Value_Truth{Truth: v}
		}
		out.Values = append(out.Values, value)
	}
	return out
}

// decodeFilter fills a filter that may nest to a depth. The filter still has to be checked otherwise.
func decodeFilter(in *stagepb.Filter, f *sdk.Filter, depth int) error {
	if depth == 0 {
		return fmt.Errorf("it nests more than %d deep", sdk.MaxFilterDepth)
	}
	if op := in.GetOp(); op <= 0 || op > stagepb.FilterOp(sdk.FilterPrefix) {
		return fmt.Errorf("operator %v is unknown; a newer racflow may know it", op)
	}
	if field := in.GetField(); field < 0 || field > stagepb.Field(sdk.FieldMeta) {
		return fmt.Errorf("field %v is unknown; a newer racflow may know it", field)
	}
	f.Op, f.Field, f.Key = sdk.FilterOp(in.GetOp()), sdk.Field(in.GetField()), in.GetKey()
	if n := len(in.GetParts()); n > 0 {
		f.Parts = make([]sdk.Filter, n)
	}
	for i, part := range in.GetParts() {
		if err := decodeFilter(part, &f.Parts[i], depth-1); err != nil {
			return err
		}
	}
	for _, v := range in.GetValues() {
		switch v := v.GetValue().(type) {
		case *stagepb.Value_Text:
			f.Values = append(f.Values, v.Text)
		case *stagepb.Value_Number:
			f.Values = append(f.Values, v.Number)
		case *stagepb.Value_Truth:
			f.Values = append(f.Values, v.Truth)
		default:
			return fmt.Errorf("a value is missing")
		}
	}
	return nil
}

// EncodeSearch makes a search request.
func EncodeSearch(collection string, r sdk.Ranking, queries []sdk.Query) (*stagepb.SearchRequest, error) {
	n := len(queries)
	rows := &stagepb.Rows{N: uint32(n), Text: make([]string, n)}
	for i := range queries {
		rows.Text[i] = Valid(queries[i].Text)
	}
	vector := func(i int) []float32 { return queries[i].Vector }
	if err := packVectors(rows, widest(n, vector), vector); err != nil {
		return nil, err
	}
	filters, numbers, err := packFilters(queries)
	if err != nil {
		return nil, err
	}
	return &stagepb.SearchRequest{
		Collection: Valid(collection), Mode: stagepb.Mode(named(stagepb.Mode_value, "MODE_", r.Mode)), TopK: uint32(r.TopK), NumCandidates: uint32(r.NumCandidates),
		Fusion: stagepb.Fusion(named(stagepb.Fusion_value, "FUSION_", r.Method)), DenseWeight: r.DenseWeight, RrfK: uint32(r.K), Texts: r.Texts, Queries: rows,
		Filters: filters, QueryFilter: numbers, Norm: r.Norm,
	}, nil
}

// DecodeSearch returns the ranking and the queries of a search request.
func DecodeSearch(s *stagepb.SearchRequest) (sdk.Ranking, []sdk.Query, error) {
	rows := s.GetQueries()
	r := sdk.Ranking{
		Search: sdk.Search{NumCandidates: int(s.GetNumCandidates()), Texts: s.GetTexts(), Norm: s.GetNorm()},
		Fusion: sdk.Fusion{DenseWeight: s.GetDenseWeight(), K: int(s.GetRrfK())},
		TopK:   int(s.GetTopK()),
	}
	var ok bool
	if r.Mode, ok = nameOf[sdk.Mode](s.GetMode(), "MODE_"); !ok {
		return r, nil, fmt.Errorf("unknown search mode %v", s.GetMode())
	}
	if r.Method, ok = nameOf[string](s.GetFusion(), "FUSION_"); !ok {
		return r, nil, fmt.Errorf("unknown fusion %v", s.GetFusion())
	}
	if err := whole("text", len(rows.GetText()), int(rows.GetN())); err != nil {
		return r, nil, err
	}
	vectors, err := unpackVectors(rows)
	if err != nil {
		return r, nil, err
	}
	queries := make([]sdk.Query, len(rows.GetText()))
	for i := range queries {
		queries[i] = sdk.Query{Text: rows.Text[i], Vector: at(vectors, i)}
	}
	if err := unpackFilters(s.GetFilters(), s.GetQueryFilter(), queries); err != nil {
		return r, nil, err
	}
	return r, queries, nil
}
