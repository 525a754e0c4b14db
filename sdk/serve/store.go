package serve

import (
	"context"
	"errors"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// OpenCollection implements the service.
func (s *Server) OpenCollection(ctx context.Context, req *stagepb.OpenCollectionRequest) (*stagepb.OpenCollectionReply, error) {
	reply := &stagepb.OpenCollectionReply{}
	return reply, work(ctx, s, "OpenCollection", reply, func(store sdk.Store) error {
		c, err := store.Open(ctx, req.GetCollection(), sdk.Schema{Dimension: int(req.GetDimension()), Analyzer: req.GetAnalyzer()})
		reply.Collection = wire.EncodeCollection(c)
		return err
	})
}

// Attach implements the service.
func (s *Server) Attach(ctx context.Context, _ *stagepb.AttachRequest) (*stagepb.AttachReply, error) {
	reply := &stagepb.AttachReply{}
	return reply, work(ctx, s, "Attach", reply, func(store sdk.Attacher) error {
		a, err := store.Attach(ctx)
		if errors.As(err, new(*sdk.ArgumentError)) {
			reply.Errors = wire.EncodeArgumentErrors(err)
			return nil
		}
		reply.Attached = wire.EncodeAttached(a)
		return err
	})
}

// ListCollections implements the service.
func (s *Server) ListCollections(ctx context.Context, _ *stagepb.ListCollectionsRequest) (*stagepb.ListCollectionsReply, error) {
	reply := &stagepb.ListCollectionsReply{}
	return reply, work(ctx, s, "ListCollections", reply, func(store sdk.Store) error {
		list, err := store.List(ctx)
		for _, c := range list {
			reply.Collections = append(reply.Collections, wire.EncodeCollection(c))
		}
		return err
	})
}

// write does what changes a collection. Only Put leaves out single rows.
func (s *Server) write(ctx context.Context, what string, do func(sdk.Store) error) (*stagepb.WriteReply, error) {
	reply := &stagepb.WriteReply{}
	return reply, work(ctx, s, what, reply, func(store sdk.Store) error {
		err := do(store)
		var failed sdk.RowErrors
		if errors.As(err, &failed) {
			reply.Errors, err = wire.EncodeRowErrors(failed), nil
		}
		return err
	})
}

// Put implements the service.
func (s *Server) Put(ctx context.Context, req *stagepb.PutRequest) (*stagepb.WriteReply, error) {
	return s.write(ctx, "Put", func(store sdk.Store) error {
		entries, err := wire.DecodeEntries(req.GetRows(), int(req.GetRows().GetN()))
		if err != nil {
			return sdk.Invalid(err)
		}
		return store.Put(ctx, req.GetCollection(), entries)
	})
}

// Delete implements the service.
func (s *Server) Delete(ctx context.Context, req *stagepb.DeleteRequest) (*stagepb.WriteReply, error) {
	return s.write(ctx, "Delete", func(store sdk.Store) error { return store.Delete(ctx, req.GetCollection(), req.GetIds()) })
}

// Commit implements the service.
func (s *Server) Commit(ctx context.Context, req *stagepb.CommitRequest) (*stagepb.WriteReply, error) {
	return s.write(ctx, "Commit", func(store sdk.Store) error { return store.Commit(ctx, req.GetCollection(), req.GetNote()) })
}

// Drop implements the service.
func (s *Server) Drop(ctx context.Context, req *stagepb.DropRequest) (*stagepb.WriteReply, error) {
	return s.write(ctx, "Drop", func(store sdk.Store) error { return store.Drop(ctx, req.GetCollection()) })
}

// Get implements the service.
func (s *Server) Get(ctx context.Context, req *stagepb.GetRequest) (*stagepb.RowsReply, error) {
	reply := &stagepb.RowsReply{}
	return reply, work(ctx, s, "Get", reply, func(store sdk.Store) error {
		entries, err := store.Get(ctx, req.GetCollection(), req.GetIds())
		return fill(reply, len(req.GetIds()), entries, err, wire.EncodeEntries)
	})
}

// Scan implements the service.
func (s *Server) Scan(ctx context.Context, req *stagepb.ScanRequest) (*stagepb.ScanReply, error) {
	reply := &stagepb.ScanReply{}
	return reply, work(ctx, s, "Scan", reply, func(store sdk.Store) error {
		page, err := store.Scan(ctx, req.GetCollection(), sdk.Scan{
			After: req.GetAfter(), Limit: int(req.GetLimit()), Labels: req.GetLabels(), Texts: req.GetTexts(), Vectors: req.GetVectors(),
		})
		if err != nil {
			return err
		}
		reply.Rows, err = wire.EncodeEntries(page.Entries)
		reply.Cursor = wire.Valid(page.Next)
		return err
	})
}
