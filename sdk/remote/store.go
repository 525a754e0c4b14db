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
	reply := &stagepb.OpenCollectionReply{}
	err := s.call(ctx, stagepb.Stage_OpenCollection_FullMethodName, &stagepb.OpenCollectionRequest{
		Collection: wire.Valid(collection), Dimension: uint32(schema.Dimension), Analyzer: wire.Valid(schema.Analyzer),
	}, reply)
	if err != nil {
		return sdk.Collection{}, err
	}
	return wire.DecodeCollection(reply.GetCollection()), nil
}

// Attach opens the collection that the config names; see sdk.Attacher. A stage that does not say
// that it can is not asked.
func (s *Stage) Attach(ctx context.Context) (sdk.Attached, error) {
	if !s.Attaches {
		return sdk.Attached{}, sdk.Invalid(fmt.Errorf("%s cannot serve a collection that somebody else makes: use another store, or give the knowledge a source", s.name()))
	}
	reply := &stagepb.AttachReply{}
	if err := s.call(ctx, stagepb.Stage_Attach_FullMethodName, &stagepb.AttachRequest{}, reply); err != nil {
		return sdk.Attached{}, err
	}
	if errs := reply.GetErrors(); len(errs) > 0 {
		return sdk.Attached{}, sdk.Invalid(wire.DecodeArgumentErrors(errs)[0])
	}
	a, err := wire.DecodeAttached(reply.GetAttached())
	if err != nil {
		return sdk.Attached{}, s.malformed(err)
	}
	return a, nil
}

// List tells which collections there are; see sdk.Store.
func (s *Stage) List(ctx context.Context) ([]sdk.Collection, error) {
	reply := &stagepb.ListCollectionsReply{}
	if err := s.call(ctx, stagepb.Stage_ListCollections_FullMethodName, &stagepb.ListCollectionsRequest{}, reply); err != nil {
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
	return s.call(ctx, stagepb.Stage_Drop_FullMethodName, &stagepb.DropRequest{Collection: wire.Valid(collection)}, &stagepb.WriteReply{})
}

// Put adds entries; see sdk.Store.
func (s *Stage) Put(ctx context.Context, collection string, entries []sdk.Entry) error {
	in, err := wire.EncodeEntries(entries)
	if err != nil {
		return sdk.Invalid(err)
	}
	reply := &stagepb.WriteReply{}
	if err := s.call(ctx, stagepb.Stage_Put_FullMethodName, &stagepb.PutRequest{Collection: wire.Valid(collection), Rows: in}, reply); err != nil {
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
	return s.call(ctx, stagepb.Stage_Delete_FullMethodName, &stagepb.DeleteRequest{Collection: wire.Valid(collection), Ids: wire.ValidAll(ids)}, &stagepb.WriteReply{})
}

// Commit makes changes durable and visible; see sdk.Store.
func (s *Stage) Commit(ctx context.Context, collection string, note []byte) error {
	req := &stagepb.CommitRequest{Collection: wire.Valid(collection), Note: bytes.Clone(note)}
	return s.call(ctx, stagepb.Stage_Commit_FullMethodName, req, &stagepb.WriteReply{})
}

// Retrieve implements sdk.Retriever.
func (s *Stage) Retrieve(ctx context.Context, collection string, r sdk.Ranking, queries []sdk.Query) ([][]sdk.Candidate, error) {
	search, err := wire.EncodeSearch(collection, r, queries)
	if err != nil {
		return nil, sdk.Invalid(err)
	}
	return rows(ctx, s, stagepb.Stage_Search_FullMethodName, search, len(queries), wire.DecodeCandidates, wire.CheckCandidates)
}

// Get returns entries by id; see sdk.Store.
func (s *Stage) Get(ctx context.Context, collection string, ids []string) ([]sdk.Entry, error) {
	req := &stagepb.GetRequest{Collection: wire.Valid(collection), Ids: wire.ValidAll(ids)}
	return rows(ctx, s, stagepb.Stage_Get_FullMethodName, req, len(ids), wire.DecodeEntries, nil)
}

// Scan walks through a collection; see sdk.Store.
func (s *Stage) Scan(ctx context.Context, collection string, q sdk.Scan) (sdk.Page, error) {
	reply := &stagepb.ScanReply{}
	err := s.call(ctx, stagepb.Stage_Scan_FullMethodName, &stagepb.ScanRequest{
		Collection: wire.Valid(collection), After: wire.Valid(q.After), Limit: uint32(q.Limit),
		Labels: wire.ValidAll(q.Labels), Texts: q.Texts, Vectors: q.Vectors,
	}, reply)
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
