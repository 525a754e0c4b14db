package wire

import (
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

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
		Collection: Valid(collection), Mode: modes[r.Mode], TopK: uint32(r.TopK), NumCandidates: uint32(r.NumCandidates),
		Fusion: fusions[r.Method], DenseWeight: r.DenseWeight, RrfK: uint32(r.K), Texts: r.Texts, Queries: rows,
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
	if r.Mode, ok = key(modes, s.GetMode()); !ok {
		return r, nil, fmt.Errorf("unknown search mode %v", s.GetMode())
	}
	if r.Method, ok = key(fusions, s.GetFusion()); !ok {
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
