package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/fuse"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Search implements the service. It asks a store that ranks by itself, or fuses the legs of
// one that does not.
func (s *Server) Search(ctx context.Context, req *stagepb.SearchRequest) (*stagepb.RowsReply, error) {
	reply := &stagepb.RowsReply{}
	return reply, work(ctx, s, "Search", reply, func(stage any) error {
		r, queries, err := wire.DecodeSearch(req)
		if err == nil {
			err = fuse.Check(r.Fusion)
		}
		if err != nil {
			return sdk.Invalid(err)
		}
		retriever, ok := stage.(sdk.Retriever)
		if !ok {
			store, ok := stage.(sdk.Store)
			if !ok {
				return sdk.Invalid(errNotOffered)
			}
			retriever = fused{store}
		}
		lists, err := retriever.Retrieve(ctx, req.GetCollection(), r, queries)
		return fill(reply, len(queries), lists, err, func(lists [][]sdk.Candidate) (*stagepb.Rows, error) {
			return wire.EncodeCandidates(lists, r.Texts)
		})
	})
}

// fused makes a Retriever of a store by the shared formulas.
type fused struct{ sdk.Store }

func (f fused) Retrieve(ctx context.Context, collection string, r sdk.Ranking, queries []sdk.Query) ([][]sdk.Candidate, error) {
	if r.Mode != sdk.ModeHybrid { // fusion leaves the order of a side that stands alone as it is
		r.NumCandidates = min(r.NumCandidates, r.TopK)
	}
	var failed sdk.RowErrors
	hits, rowsErr := f.Search(ctx, collection, r.Search, queries)
	if rowsErr != nil && !errors.As(rowsErr, &failed) {
		return nil, rowsErr
	}
	if len(hits) != len(queries) {
		return nil, fmt.Errorf("the store returned hits for %d of %d queries", len(hits), len(queries))
	}
	lists := make([][]sdk.Candidate, len(hits))
	var bare missing
	for i, h := range hits {
		lists[i] = fuse.Fuse(h, r.Fusion, r.TopK)
		bare.note(h, lists[i])
	}
	if len(bare.ids) == 0 {
		return lists, rowsErr
	}
	entries, err := f.Get(ctx, collection, bare.ids)
	if err != nil {
		return nil, err
	}
	if len(entries) != len(bare.ids) {
		return nil, fmt.Errorf("the store returned %d of %d entries", len(entries), len(bare.ids))
	}
	for i := range lists {
		lists[i] = bare.complete(lists[i], entries, queries[i].Filter)
	}
	return lists, rowsErr
}

// missing are the candidates whose entry no hit carried.
type missing struct {
	ids   []string // each once
	place map[string]int
}

// note takes in the candidates of one query that came without an entry.
func (m *missing) note(h sdk.Hits, list []sdk.Candidate) {
	carrying := 0
	for _, side := range [][]sdk.Hit{h.Dense, h.Lexical} {
		for i := range side {
			if side[i].Entry != nil {
				carrying++
			}
		}
	}
	if carrying == len(h.Dense)+len(h.Lexical) {
		return
	}
	var carried map[string]bool
	if carrying > 0 {
		carried = carriers(h)
	}
	if m.place == nil {
		m.place = make(map[string]int, 4*len(list)) // neighbours of many queries are the same
	}
	for i := range list {
		id := list[i].ID
		if _, ok := m.place[id]; !ok && !carried[id] {
			m.place[id] = len(m.ids)
			m.ids = append(m.ids, id)
		}
	}
}

// carriers are the ids of the hits that brought their entry.
func carriers(h sdk.Hits) map[string]bool {
	carried := map[string]bool{}
	for _, side := range [][]sdk.Hit{h.Dense, h.Lexical} {
		for _, hit := range side {
			if hit.Entry != nil {
				carried[hit.ID] = true
			}
		}
	}
	return carried
}

// complete fills in the entries that were asked for. A candidate is left out whose entry has been
// deleted since the search, or changed so that the filter does not select it any more: it may belong to
// somebody else by now.
func (m *missing) complete(list []sdk.Candidate, entries []sdk.Entry, filter *sdk.Filter) []sdk.Candidate {
	kept := list[:0]
	for i := range list {
		c := list[i]
		if at, ok := m.place[c.ID]; ok {
			e := &entries[at]
			if e.ID == "" || !filter.Match(e.ID, e.Label, e.Meta) {
				continue
			}
			c.Text, c.Label, c.Context, c.Meta = e.Text, e.Label, e.Context, e.Meta
		}
		kept = append(kept, c)
	}
	return kept
}
