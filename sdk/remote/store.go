package remote

import (
	"bytes"
	"context"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Open makes a collection ready; see sdk.Store.
func (s *Stage) Open(ctx context.Context, collection string, schema sdk.Schema) (sdk.Collection, error) {
	open := &stagepb.Open{Collection: wire.Valid(collection), Dimension: uint32(schema.Dimension), Analyzer: wire.Valid(schema.Analyzer)}
	reply, err := s.ask(ctx, &stagepb.Request{Body: &stagepb.Request_Open{Open: open}})
	if err != nil {
		return sdk.Collection{}, err
	}
	return wire.DecodeCollection(reply.GetCollection()), nil
}

// List tells which collections there are; see sdk.Store.
func (s *Stage) List(ctx context.Context) ([]sdk.Collection, error) {
	reply, err := s.ask(ctx, &stagepb.Request{Body: &stagepb.Request_List{List: &stagepb.List{}}})
	if err != nil {
		return nil, err
	}
	list := make([]sdk.Collection, len(reply.GetCollections()))
	for i, c := range reply.GetCollections() {
		list[i] = wire.DecodeCollection(c)
	}
	return list, nil
}

// Drop removes a collection; see sdk.Store.
func (s *Stage) Drop(ctx context.Context, collection string) error {
	return s.do(ctx, &stagepb.Request{Body: &stagepb.Request_Drop{Drop: &stagepb.Drop{Collection: wire.Valid(collection)}}})
}

// Put adds entries; see sdk.Store.
func (s *Stage) Put(ctx context.Context, collection string, entries []sdk.Entry) error {
	in, err := wire.EncodeEntries(entries)
	if err != nil {
		return sdk.Invalid(err)
	}
	put := &stagepb.Put{Collection: wire.Valid(collection), Rows: in}
	reply, err := s.ask(ctx, &stagepb.Request{Body: &stagepb.Request_Put{Put: put}})
	if err != nil {
		return err
	}
	failed, err := wire.DecodeRowErrors(reply.GetErrors(), len(entries))
	if err != nil {
		return s.malformed(err)
	}
	if failed != nil {
		return failed
	}
	return nil
}

// Delete removes entries; see sdk.Store.
func (s *Stage) Delete(ctx context.Context, collection string, ids []string) error {
	del := &stagepb.Delete{Collection: wire.Valid(collection), Ids: wire.ValidAll(ids)}
	return s.do(ctx, &stagepb.Request{Body: &stagepb.Request_Delete{Delete: del}})
}

// Commit makes changes durable and visible; see sdk.Store.
func (s *Stage) Commit(ctx context.Context, collection string, note []byte) error {
	commit := &stagepb.Commit{Collection: wire.Valid(collection), Note: bytes.Clone(note)}
	return s.do(ctx, &stagepb.Request{Body: &stagepb.Request_Commit{Commit: commit}})
}

// Retrieve implements sdk.Retriever.
func (s *Stage) Retrieve(ctx context.Context, collection string, r sdk.Ranking, queries []sdk.Query) ([][]sdk.Candidate, error) {
	search, err := wire.EncodeSearch(collection, r, queries)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	req := &stagepb.Request{Body: &stagepb.Request_Search{Search: search}}
	return rows(ctx, s, req, len(queries), wire.DecodeCandidates, wire.CheckCandidates)
}

// Get returns entries by id; see sdk.Store.
func (s *Stage) Get(ctx context.Context, collection string, ids []string) ([]sdk.Entry, error) {
	get := &stagepb.Get{Collection: wire.Valid(collection), Ids: wire.ValidAll(ids)}
	req := &stagepb.Request{Body: &stagepb.Request_Get{Get: get}}
	return rows(ctx, s, req, len(ids), wire.DecodeEntries, nil)
}

// Scan walks through a collection; see sdk.Store.
func (s *Stage) Scan(ctx context.Context, collection string, q sdk.Scan) (sdk.Page, error) {
	scan := &stagepb.Scan{
		Collection: wire.Valid(collection), After: wire.Valid(q.After), Limit: uint32(q.Limit),
		Labels: wire.ValidAll(q.Labels), Texts: q.Texts, Vectors: q.Vectors,
	}
	reply, err := s.ask(ctx, &stagepb.Request{Body: &stagepb.Request_Scan{Scan: scan}})
	if err != nil {
		return sdk.Page{}, err
	}
	entries, err := wire.DecodeEntries(reply.GetRows(), int(reply.GetRows().GetN()))
	if err != nil {
		return sdk.Page{}, s.malformed(err)
	}
	for i := range entries {
		if err := wire.CheckDirection(entries[i].Vector); err != nil {
			return sdk.Page{}, fmt.Errorf("%w (entry %d of a page)", s.returned(err), i+1)
		}
	}
	return sdk.Page{Entries: entries, Next: reply.GetCursor()}, nil
}
