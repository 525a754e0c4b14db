package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// handle calls the method of the stage that a request asks for and fills the
// reply. It returns sdk.RowErrors where single rows failed.
func handle(ctx context.Context, stage any, req *stagepb.Request, reply *stagepb.Reply) error {
	switch body := req.GetBody().(type) {
	case *stagepb.Request_Embed:
		return on(stage, func(e sdk.Embedder) error { return embed(ctx, e, body.Embed, reply) })
	case *stagepb.Request_Fit:
		return on(stage, func(f sdk.Fitter) error { return f.Fit(ctx, body.Fit.GetTexts()) })
	case *stagepb.Request_State:
		return on(stage, func(f sdk.Fitter) error { return state(f, reply) })
	case *stagepb.Request_Chunk:
		return on(stage, func(c sdk.Chunker) error { return chunk(ctx, c, body.Chunk.GetRows(), reply) })
	case *stagepb.Request_Enrich:
		return on(stage, func(e sdk.Enricher) error { return enrich(ctx, e, body.Enrich.GetRows(), reply) })
	case *stagepb.Request_Rerank:
		return on(stage, func(r sdk.Reranker) error {
			return batch(ctx, body.Rerank.GetRows(), reply, r.Rerank, infallible(wire.EncodeRankings))
		})
	case *stagepb.Request_Prompt:
		return on(stage, func(p sdk.Prompter) error {
			return batch(ctx, body.Prompt.GetRows(), reply, p.Prompt, infallible(wire.EncodePrompts))
		})
	case *stagepb.Request_Sample:
		return on(stage, func(s sdk.Sampler) error {
			return batch(ctx, body.Sample.GetRows(), reply, s.Sample, infallible(wire.EncodeSamples))
		})
	case *stagepb.Request_Elect:
		return on(stage, func(e sdk.Elector) error {
			return batch(ctx, body.Elect.GetRows(), reply, e.Elect, infallible(wire.EncodeVerdicts))
		})
	case *stagepb.Request_Search:
		return search(ctx, stage, body.Search, reply)
	case nil:
		return sdk.Invalid(errors.New("the request asks for nothing that this plugin knows; it may be older than racflow"))
	}
	return on(stage, func(s sdk.Store) error { return store(ctx, s, req, reply) })
}

// on calls do with the stage as the interface T.
func on[T any](stage any, do func(T) error) error {
	t, ok := stage.(T)
	if !ok {
		return sdk.Invalid(errNotOffered)
	}
	return do(t)
}

// batch decodes a batch, calls the stage and encodes one result per row.
func batch[T any](ctx context.Context, rows *stagepb.Rows, reply *stagepb.Reply,
	call func(context.Context, sdk.Batch) ([]T, error), encode func([]T) (*stagepb.Rows, error)) error {
	b, err := wire.DecodeBatch(rows)
	if err != nil {
		return sdk.Invalid(err)
	}
	results, err := call(ctx, b)
	return fill(reply, len(b.Items), results, err, encode)
}

func chunk(ctx context.Context, c sdk.Chunker, rows *stagepb.Rows, reply *stagepb.Reply) error {
	documents, err := wire.DecodeDocuments(rows)
	if err != nil {
		return sdk.Invalid(err)
	}
	chunks, err := c.Chunk(ctx, documents)
	return fill(reply, len(documents), chunks, err, wire.EncodeChunks)
}

func enrich(ctx context.Context, e sdk.Enricher, rows *stagepb.Rows, reply *stagepb.Reply) error {
	passages, err := wire.DecodePassages(rows)
	if err != nil {
		return sdk.Invalid(err)
	}
	additions, err := e.Enrich(ctx, passages)
	return fill(reply, len(passages), additions, err, infallible(wire.EncodeAdditions))
}

func embed(ctx context.Context, e sdk.Embedder, req *stagepb.Embed, reply *stagepb.Reply) error {
	vectors, err := e.Embed(ctx, sdk.Role(req.GetRole()), req.GetTexts())
	return fill(reply, len(req.GetTexts()), vectors, err, func(v [][]float32) (*stagepb.Rows, error) {
		return wire.EncodeVectors(v, e.Dimension())
	})
}

// fill puts the results of n rows into the reply and returns the errors of
// single rows. There must be a result for each row, failed ones too.
func fill[T any](reply *stagepb.Reply, n int, results []T, err error, encode func([]T) (*stagepb.Rows, error)) error {
	var failed sdk.RowErrors
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	if results == nil && failed != nil {
		results = make([]T, n) // every row failed, or the others have nothing
	}
	if len(results) != n {
		return fmt.Errorf("the stage returned %d results for %d rows", len(results), n)
	}
	for row := range failed {
		if row < 0 || row >= n {
			return fmt.Errorf("the stage returned an error for row %d of %d", row, n)
		}
	}
	rows, encodeErr := encode(results)
	if encodeErr != nil {
		return encodeErr
	}
	reply.Rows = rows
	return err
}

func infallible[T any](encode func([]T) *stagepb.Rows) func([]T) (*stagepb.Rows, error) {
	return func(results []T) (*stagepb.Rows, error) { return encode(results), nil }
}

func state(f sdk.Fitter, reply *stagepb.Reply) error {
	learnt, err := f.State()
	if err != nil {
		return err
	}
	if len(learnt) > wire.MaxState {
		return fmt.Errorf("the stage's state has %d bytes, more than %d", len(learnt), wire.MaxState)
	}
	reply.State = learnt
	return nil
}

func store(ctx context.Context, s sdk.Store, req *stagepb.Request, reply *stagepb.Reply) error {
	switch body := req.GetBody().(type) {
	case *stagepb.Request_Open:
		o := body.Open
		c, err := s.Open(ctx, o.GetCollection(), sdk.Schema{Dimension: int(o.GetDimension()), Analyzer: o.GetAnalyzer()})
		if err != nil {
			return err
		}
		reply.Collection = wire.EncodeCollection(c)
		return nil
	case *stagepb.Request_List:
		list, err := s.List(ctx)
		for _, c := range list {
			reply.Collections = append(reply.Collections, wire.EncodeCollection(c))
		}
		return err
	case *stagepb.Request_Drop:
		return s.Drop(ctx, body.Drop.GetCollection())
	case *stagepb.Request_Put:
		entries, err := wire.DecodeEntries(body.Put.GetRows(), int(body.Put.GetRows().GetN()))
		if err != nil {
			return sdk.Invalid(err)
		}
		return s.Put(ctx, body.Put.GetCollection(), entries)
	case *stagepb.Request_Delete:
		return s.Delete(ctx, body.Delete.GetCollection(), body.Delete.GetIds())
	case *stagepb.Request_Commit:
		return s.Commit(ctx, body.Commit.GetCollection(), body.Commit.GetNote())
	case *stagepb.Request_Get:
		entries, err := s.Get(ctx, body.Get.GetCollection(), body.Get.GetIds())
		return fill(reply, len(body.Get.GetIds()), entries, err, wire.EncodeEntries)
	case *stagepb.Request_Scan:
		q := body.Scan
		page, err := s.Scan(ctx, q.GetCollection(), sdk.Scan{
			After: q.GetAfter(), Limit: int(q.GetLimit()), Labels: q.GetLabels(), Texts: q.GetTexts(), Vectors: q.GetVectors(),
		})
		if err != nil {
			return err
		}
		reply.Rows, err = wire.EncodeEntries(page.Entries)
		reply.Cursor = wire.Valid(page.Next)
		return err
	}
	return sdk.Invalid(errNotOffered)
}
